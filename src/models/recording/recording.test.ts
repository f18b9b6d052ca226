import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createSecretMask } from "../../agents/secrets.ts";
import { openAgents } from "../../app/service/open-service.ts";
import { forTests } from "../../testing/for-tests.ts";
import { startProviderServer } from "../../testing/provider-server/provider-server.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openTestApp } from "../../testing/test-app.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { createModelResolver } from "../create-model-resolver.ts";
import { type Recording, readRecording } from "./read-recording.ts";
import { createRecorder, type Recorder } from "./record-fetch.ts";

const server = forTests(startProviderServer, ({ close }) => close());

const key = "test-key-of-none";
const retry = { attempts: 2, baseDelayMs: 1, maxDelayMs: 1 };

function agentOf(model: string, fetchFor: Recorder): ReturnType<typeof createTestAgent> {
  const providers = Object.fromEntries(
    Object.entries(server.providers).map(([name, own]) => [name, { ...own, api_key: key }]),
  );
  const resolveModel = createModelResolver({ env: {}, providers, fetchFor });
  return createTestAgent(createScriptedModel([]), { model }, { resolveModel, retry });
}

const models = ["openai/gpt-5.1", "anthropic/claude-sonnet-4-6", "google/gemini-2.5-pro", "local/m"];

test.each(models)("a recorded conversation of %s answers without its provider", async (model) => {
  await using folder = await createTemporaryRepository();
  const file = join(folder.root, "calls", "one.jsonl");
  server.script([{ text: "first" }, { text: "second" }]);
  const live = agentOf(model, createRecorder(file, createSecretMask([key]))).session();
  const said = [(await live.prompt("one")).text, (await live.prompt("two")).text];
  expect(said).toEqual(["first", "second"]);
  expect(readFileSync(file, "utf8")).not.toContain(key);

  server.script([]);
  const recording = readRecording(file);
  const again = agentOf(model, recording.fetchFor).session();
  expect([(await again.prompt("one")).text, (await again.prompt("two")).text]).toEqual(said);
  expect(recording).toMatchObject({ unused: 0, models: [model] });
  expect(server.requests).toEqual([]);
});

/** A recording of one prompt. */
async function recorded(file: string, text = "say hello to the world"): Promise<Recording> {
  server.script([{ text: "ok" }]);
  await agentOf("local/m", createRecorder(file, createSecretMask([])))
    .session()
    .prompt(text);
  return readRecording(file);
}

test("a request that was not recorded is refused, and the first difference is named", async () => {
  await using folder = await createTemporaryRepository();
  const recording = await recorded(join(folder.root, "one.jsonl"));
  const asking = agentOf("local/m", recording.fetchFor).session().prompt("say hello to the moon");
  await expect(asking).rejects.toMatchObject({
    code: "replay_mismatch",
    message:
      "The recording has no answer for this request of local/m: it differs from line 1 first at messages[1].content.",
    hint: expect.stringContaining('Recorded: "say hello to the world". Asked now: "say hello to the moon".'),
  });
  expect(recording.unused).toBe(1);
});

test("a request more than was recorded says so", async () => {
  await using folder = await createTemporaryRepository();
  const session = agentOf("local/m", (await recorded(join(folder.root, "one.jsonl"))).fetchFor).session();
  await session.prompt("say hello to the world");
  await expect(session.prompt("and again")).rejects.toThrow("has no further answer of local/m");
});

test("a field that is named as ignored may differ", async () => {
  await using folder = await createTemporaryRepository();
  const file = join(folder.root, "one.jsonl");
  await recorded(file);
  const { fetchFor } = readRecording(file, { ignore: ["messages.*.content"] });
  expect((await agentOf("local/m", fetchFor).session().prompt("anything else")).text).toBe("ok");
});

test("sessions side by side find their own answers, whatever the order", async () => {
  await using folder = await createTemporaryRepository();
  const file = join(folder.root, "many.jsonl");
  const names = ["a", "b", "c", "d"];
  const recorder = createRecorder(file, createSecretMask([]));
  for (const name of names) {
    server.script([{ text: `answer ${name}` }]);
    await agentOf("local/m", recorder).session().prompt(name);
  }
  const recording = readRecording(file);
  const asked = names.toReversed();
  const answers = await Promise.all(
    asked.map((name) => agentOf("local/m", recording.fetchFor).session().prompt(name)),
  );
  expect(answers.map(({ text }) => text)).toEqual(asked.map((name) => `answer ${name}`));
});

test("ids of kit's own may differ as long as each stands for the same one everywhere", async () => {
  await using folder = await createTemporaryRepository();
  const file = join(folder.root, "one.jsonl");
  const [first, second] = ["call_01JDXPT2Q0ABCDEFGHJKMNPQRS", "call_01JDXPT2Q0ABCDEFGHJKMNPQRT"];
  const others = ["call_01JDXPT2Q1ABCDEFGHJKMNPQRS", "call_01JDXPT2Q1ABCDEFGHJKMNPQRT"] as const;
  await recorded(file, `${first} ${second} ${first}`);
  const ask = (text: string) => agentOf("local/m", readRecording(file).fetchFor).session().prompt(text);
  expect((await ask(`${others[0]} ${others[1]} ${others[0]}`)).text).toBe("ok");
  await expect(ask(`${others[0]} ${others[1]} ${others[1]}`)).rejects.toThrow("differs from line 1");
});

test("faults are replayed as they came: a status, an answer that breaks off, then the whole one", async () => {
  await using folder = await createTemporaryRepository();
  const file = join(folder.root, "faults.jsonl");
  const flaky = [{ status: 503 }, { text: "well" }];
  server.script(flaky);
  await agentOf("local/m", createRecorder(file, createSecretMask([])))
    .session()
    .prompt("x");
  server.script([{ answer: { text: "a long answer that is cut" }, cutAfter: 2 }, { text: "whole" }]);
  await agentOf("local/m", createRecorder(file, createSecretMask([])))
    .session()
    .prompt("y");
  const recording = readRecording(file);
  expect((await agentOf("local/m", recording.fetchFor).session().prompt("x")).text).toBe("well");
  expect((await agentOf("local/m", recording.fetchFor).session().prompt("y")).text).toBe("whole");
  expect(recording.unused).toBe(0);
});

test("a provider that cannot be reached is recorded as such", async () => {
  await using folder = await createTemporaryRepository();
  const file = join(folder.root, "down.jsonl");
  const { pathname } = new URL(server.providers.local?.base_url ?? "");
  const down = createModelResolver({
    env: {},
    providers: { local: { base_url: `http://127.0.0.1:9${pathname}` } },
    fetchFor: createRecorder(file, createSecretMask([])),
  });
  const agent = createTestAgent(createScriptedModel([]), { model: "local/m" }, { resolveModel: down, retry });
  await expect(agent.session().prompt("x")).rejects.toMatchObject({ code: "model_error" });
  const again = agentOf("local/m", readRecording(file).fetchFor);
  await expect(again.session().prompt("x")).rejects.toMatchObject({ code: "model_error" });
});

test.each([
  ["", "is not a recording", "{}"],
  [
    "cut off by a crash",
    "line 2 cannot be read",
    '{"version":1,"model":"a/b","request":{"url":""},"response":{}}\n{"ver',
  ],
])("a file that is none is refused: %s", async (_, message, text) => {
  await using folder = await createTemporaryRepository();
  const file = join(folder.root, "x.jsonl");
  writeFileSync(file, text);
  expect(() => readRecording(file)).toThrow(message);
});

test("a recording that is missing, or a file that cannot be written, is named", async () => {
  await using folder = await createTemporaryRepository();
  expect(() => readRecording(join(folder.root, "none.jsonl"))).toThrow("There is no recording at");
  mkdirSync(join(folder.root, "taken"));
  expect(() => createRecorder(join(folder.root, "taken"), createSecretMask([]))).toThrow(
    "cannot be recorded",
  );
});

test("a project records with KIT_RECORD, and its tests run from the recording", async () => {
  await using folder = await createTemporaryRepository();
  const root = folder.root;
  const { base_url } = server.providers.local ?? {};
  writeFileSync(
    join(root, "kit.toml"),
    `[agent]\nmodel = "local/m"\n[providers.local]\nbase_url = "${base_url}"\napi_key = "${key}"\n`,
  );
  server.script([{ text: "recorded answer" }]);
  const env = { KIT_RECORD: "tests/calls.jsonl", SOME_TOKEN: "token-0123456789" };
  const agents = await openAgents({ root, env });
  const secret = await (await agents.instance("default", "one"))
    .session()
    .prompt("my token is token-0123456789");
  await agents.close();
  expect(secret.text).toBe("recorded answer");
  const text = readFileSync(join(root, "tests", "calls.jsonl"), "utf8");
  expect(text).not.toMatch(/token-0123456789|test-key-of-none/);

  server.script([]);
  const app = await openTestApp({
    root,
    recording: join(root, "tests", "calls.jsonl"),
    env: { SOME_TOKEN: "token-0123456789" },
  });
  const answer = await (await app.instance("default", "one"))
    .session()
    .prompt("my token is token-0123456789");
  await app.close();
  expect(answer.text).toBe("recorded answer");
});
