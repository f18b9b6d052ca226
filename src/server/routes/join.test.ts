/** Tests `join` of dispatches over HTTP on the databases that keep sessions and accepted work. */
import { verifyEvents } from "@ag-ui/client";
import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import { type UIMessage, uiMessageChunkSchema } from "ai";
import { from, lastValueFrom, toArray } from "rxjs";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { openService } from "../../app/service/open-service.ts";
import { KitClient } from "../../client/index.ts";
import { type PostgresServer, startPostgres } from "../../testing/postgres-server.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { serveForTest } from "../testing/serve-for-tests.ts";
import { type ServedService, serveService } from "../testing/serve-service.ts";

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server?.stop());

const files = {
  "src/agents/steered.ts": `export const triggers = { webhook: true };
export default {
  kind: "kit.agent",
  describe: async () => ({
    tools: [{ name: "work", description: "Works.", input: { type: "object" }, execute: async () => "Worked." }],
  }),
};
`,
};

interface Steered {
  readonly served: ServedService;
  readonly client: KitClient;
  /** Resolves when the model gets its first call. */
  readonly called: Promise<void>;
  /** Lets the model answer its first call, with a call of the tool. */
  goOn(): void;
}

/** The user's texts and the results of tools in the prompt of a model call. */
function textsOf(prompt: LanguageModelV4Prompt): readonly string[] {
  return prompt.flatMap((message) => {
    if (message.role === "tool") return ["(result)"];
    if (message.role !== "user") return [];
    return message.content.flatMap((part) => (part.type === "text" ? [part.text] : [`(${part.type})`]));
  });
}

async function serve(config = "", options: Parameters<typeof serveService>[0] = {}): Promise<Steered> {
  const called = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const model = createScriptedModel(
    async ({ prompt }, index) => {
      if (index > 0) return { text: textsOf(prompt).join("|") };
      called.resolve();
      await gate.promise;
      return { toolCalls: [{ name: "work", input: {} }] };
    },
    { recordCalls: false },
  );
  const served = await serveForTest({
    ...options,
    files: { ...files, "kit.toml": `${config}[agent]\nmodel = "scripted/test"\n` },
    openService: ({ root }) => openService({ root, env: {}, models: { "scripted/test": model } }),
  });
  return {
    served,
    client: new KitClient({ baseUrl: served.url }),
    called: called.promise,
    goOn: () => gate.resolve(),
  };
}

const image = { data: "iVBORw0KGgo=", media_type: "image/png" };

test.each(["sqlite", "postgres"])("messages join the operation that runs: %s", async (database) => {
  const { url } = server;
  const { served, client, called, goOn } = await serve(
    database === "sqlite" ? "" : `store = "${url}"\nengine = "${url}"\n`,
  );
  const { engine } = served.service;
  const answer = client.agents.invoke("steered", { id: "1", message: "begin" });
  await called;
  const send = (input: string, more: object = {}, key = input) =>
    client.agents.dispatch("steered", { id: "1", input, ...more }, { idempotencyKey: key });
  const first = await send("left", { join: "next_turn", client_id: "m-left" });
  expect(await send("left", { join: "next_turn", client_id: "m-left" })).toEqual(first);
  const later = await send("later");
  const second = await send("right", { join: "next_turn", images: [image] });
  await expect(send("right", {}, "left")).rejects.toMatchObject({ code: "conflict" });
  await expect
    .poll(() => engine.waitingInputs?.({ agent: "steered", instance_id: "1", session: "default" }))
    .toEqual([first.dispatch_id, second.dispatch_id]);
  goOn();
  const { text, metadata } = await answer;
  expect(text).toBe("begin|(result)|left|right|(file)");
  const joined = { status: "completed", result: { joined: metadata.operation_id } };
  expect(await engine.awaitDispatch(first.dispatch_id)).toMatchObject(joined);
  expect(await engine.awaitDispatch(second.dispatch_id)).toMatchObject(joined);
  // A message that joins passes the inputs that wait for their turn.
  const ended = await engine.awaitDispatch(later.dispatch_id);
  expect(ended?.result).toMatchObject({ text: "begin|(result)|left|right|(file)|later" });
  const page = await client.agents.historyPage("steered", { id: "1" });
  const [message] = page.messages.filter(({ joined_from }) => joined_from === first.operation_id);
  expect(message).toMatchObject({ operation_id: metadata.operation_id, client_id: "m-left" });
  const { events } = await client.agents.operationEvents("steered", {
    id: "1",
    operation_id: String(metadata.operation_id),
  });
  expect(events.filter(({ type }) => type === "joined")).toMatchObject([
    { message: "left", client_id: "m-left", joined_from: first.operation_id, dispatch_id: first.dispatch_id },
    { message: "right", images: 1, joined_from: second.operation_id },
  ]);
  const followed: unknown[] = [];
  for await (const event of client.agents.followOperation("steered", {
    id: "1",
    operation_id: first.operation_id,
  }))
    followed.push(event);
  expect(followed).toEqual([]);
});

test("streams of a page and of a front end have a message that joins, and the history has it once", async () => {
  for (const interfaceName of ["ui", "agui"]) {
    const { served, client, called, goOn } = await serve();
    const begin = { id: "m-1", role: "user" };
    const path = `/agents/steered/1/${interfaceName}`;
    const reply = await served.stream(path, {
      body:
        interfaceName === "ui"
          ? { messages: [{ ...begin, parts: [{ type: "text", text: "begin" }] }] }
          : { threadId: "default", runId: "r", messages: [{ ...begin, content: "begin" }] },
    });
    await called;
    const input = { id: "1", input: "left", join: "next_turn", client_id: "m-left" } as const;
    await client.agents.dispatch("steered", input);
    const { operation_id } = await client.agents.dispatch("steered", {
      ...{ id: "1", input: "right", join: "next_turn" },
    });
    const key = { agent: "steered", instance_id: "1", session: "default" };
    await expect.poll(() => served.service.engine.waitingInputs?.(key)).toHaveLength(2);
    goOn();
    const sent = (await reply.text())
      .split("\n")
      .flatMap((line) => (line.startsWith("data: {") ? [JSON.parse(line.slice(6))] : []));
    if (interfaceName === "ui") {
      expect(sent.filter(({ type }) => type === "data-joined")).toEqual([
        { type: "data-joined", id: "m-left", data: { text: "left" } },
        { type: "data-joined", id: `user-${operation_id}`, data: { text: "right" } },
      ]);
      const types = sent.map(({ type }) => type);
      expect(types.indexOf("data-joined")).toBeGreaterThan(types.indexOf("tool-output-available"));
      expect(types.lastIndexOf("data-joined")).toBeLessThan(types.indexOf("text-start"));
      for (const chunk of sent)
        expect(await uiMessageChunkSchema().validate?.(chunk), chunk.type).toMatchObject({ success: true });
      const { body } = await served.send(`${path}/default/messages`);
      expect(
        body.messages.map(({ id, parts }: UIMessage) => [id, parts.map(({ type }) => type).join()]),
      ).toEqual([
        ["m-1", "text"],
        ["m-left", "text"],
        [`user-${operation_id}`, "text"],
        [expect.stringMatching(/^op_/), expect.not.stringContaining("joined")],
      ]);
    } else {
      await lastValueFrom(from(sent).pipe(verifyEvents(), toArray()));
      expect(sent.filter(({ role }) => role === "user")).toMatchObject([
        { type: "TEXT_MESSAGE_START", messageId: "m-left" },
        { type: "TEXT_MESSAGE_START", messageId: `user-${operation_id}` },
      ]);
      expect(sent).toContainEqual({ type: "TEXT_MESSAGE_CONTENT", messageId: "m-left", delta: "left" });
    }
  }
});

test("a message of another principal does not join, and waits for its turn", async () => {
  const auth = ({ headers }: { readonly headers: Headers }) => ({
    id: String(headers.get("authorization")).replace("Bearer ", ""),
  });
  const { served, called, goOn } = await serve("", { access: { auth }, authorize: () => true });
  const as = (name: string) => ({ authorization: `Bearer ${name}` });
  const path = "/agents/steered/1";
  const answer = served.send(path, { body: { message: "begin" }, headers: as("ada") });
  await called;
  const send = async (input: string, name: string) =>
    (await served.send(`${path}/dispatch`, { body: { input, join: "next_turn" }, headers: as(name) })).body;
  const foreign = await send("foreign", "bob");
  const own = await send("own", "ada");
  goOn();
  expect((await answer).body.result.text).toBe("begin|(result)|own");
  const { engine } = served.service;
  expect((await engine.awaitDispatch(own.dispatch_id))?.result).toHaveProperty("joined");
  expect((await engine.awaitDispatch(foreign.dispatch_id))?.result).toMatchObject({
    text: "begin|(result)|own|foreign",
  });
});

test("a request to mend a typed answer has no message that joins", async () => {
  const gate = Promise.withResolvers<void>();
  const called = Promise.withResolvers<void>();
  const prompts: string[] = [];
  const model = createScriptedModel(
    async ({ prompt }, index) => {
      prompts.push(textsOf(prompt).join("|"));
      if (index > 0) return { text: '{"n":1}' };
      called.resolve();
      await gate.promise;
      return { text: "no JSON" };
    },
    { recordCalls: false },
  );
  const served = await serveService({
    files: {
      "src/agents/typed.ts": `export const triggers = { webhook: true };
const output = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
export default { kind: "kit.agent", describe: async () => ({ output }) };
`,
      "kit.toml": `[agent]\nmodel = "scripted/test"\n`,
    },
    openService: ({ root }) => openService({ root, env: {}, models: { "scripted/test": model } }),
  });
  onTestFinished(() => served.close());
  const answer = served.send("/agents/typed/1", { body: { message: "begin" } });
  await called.promise;
  const { body } = await served.send("/agents/typed/1/dispatch", {
    body: { input: "steer", join: "next_turn" },
  });
  gate.resolve();
  expect((await answer).body.result.result).toEqual({ n: 1 });
  await served.service.engine.awaitDispatch(body.dispatch_id);
  expect(prompts.map((prompt) => prompt.includes("steer"))).toEqual([false, false, true]);
});

test("inputs that do not join are read once, however many wait, and so is one that no model can read", async () => {
  const { served, client, called, goOn } = await serve();
  const { engine } = served.service;
  const reads: string[] = [];
  const read = engine.getDispatch;
  engine.getDispatch = async (id) => {
    reads.push(id);
    return await read(id);
  };
  const answer = client.agents.invoke("steered", { id: "1", message: "begin" });
  await called;
  const send = (input: string, more: object = {}) =>
    client.agents.dispatch("steered", { id: "1", input, ...more });
  await send("later");
  const recording = { data: "AAAA", media_type: "audio/wav" };
  const recorded = await send("recorded", { join: "next_turn", files: [recording] });
  goOn();
  await answer;
  expect(reads).toEqual([recorded.dispatch_id]);
});

test("a page's history has the messages that joined", async () => {
  const { served, client, called, goOn } = await serve();
  const answer = client.agents.invoke("steered", { id: "1", message: "begin", images: [image] });
  await called;
  const input = { id: "1", input: "left", join: "next_turn", client_id: "m-left" } as const;
  const { dispatch_id } = await client.agents.dispatch("steered", input);
  const second = { id: "1", input: "right", join: "next_turn", images: [image, image] } as const;
  const { operation_id } = await client.agents.dispatch("steered", second);
  goOn();
  await answer;
  await served.service.engine.awaitDispatch(dispatch_id);
  const { body } = await served.send("/agents/steered/1/ui/default/messages");
  type Page = { id: string; role: string; parts: { type: string; text?: string }[] }[];
  const messages = (body.messages as Page).map(({ id, role, parts }) => ({
    id,
    role,
    parts: parts.flatMap(({ type, text }) => (role === "user" ? [text ?? type] : [])),
  }));
  expect(messages).toMatchObject([
    { role: "user", parts: ["file", "begin"] },
    { role: "user", id: "m-left", parts: ["left"] },
    { role: "user", id: `user-${operation_id}`, parts: ["file", "file", "right"] },
    { role: "assistant" },
  ]);
});

test("a message that finds no operation to join is an ordinary dispatch", async () => {
  const { served, client, goOn } = await serve();
  goOn();
  const input = { id: "1", input: "alone", join: "next_turn" } as const;
  const { dispatch_id } = await client.agents.dispatch("steered", input);
  await served.service.engine.awaitDispatch(dispatch_id);
  const { body } = await served.send(`/dispatches/${dispatch_id}`);
  expect(body).toMatchObject({ status: "completed", input: "alone", result: { text: "alone|(result)" } });
});

test("a session can go on before the operation that a message joined", async () => {
  const { served, client, called, goOn } = await serve();
  const answer = client.agents.invoke("steered", { id: "1", message: "begin" });
  await called;
  const input = { id: "1", input: "left", join: "next_turn", client_id: "m-left" } as const;
  const { dispatch_id, operation_id } = await client.agents.dispatch("steered", input);
  goOn();
  await answer;
  await served.service.engine.awaitDispatch(dispatch_id);
  const again = { id: "1", message: "again", rewind_before: operation_id };
  expect((await client.agents.invoke("steered", again)).text).toBe("again");
});

test("a message that joins has no field that the operation has decided", async () => {
  const { served } = await serve();
  const fields = {
    model: "scripted/other",
    backend: "typed",
    role: "reviewer",
    thinking_level: "low",
    attempts: 1,
    omit_rules: ["AGENTS.md"],
    tools: [{ name: "ring" }],
    history: [],
    rewind_before: "op_1",
  };
  for (const [field, value] of Object.entries(fields)) {
    const body = { input: "x", join: "next_turn", [field]: value };
    const reply = await served.send("/agents/steered/1/dispatch", { body });
    expect(reply).toMatchObject({
      status: 400,
      body: { error: { type: "invalid_request", meta: { issues: [{ path: `body.${field}` }] } } },
    });
    expect(reply.body.error.message).toContain(`\`${field}\``);
  }
});

test("only a dispatch can join, and only at the next turn", async () => {
  const { served } = await serve();
  const paths = ["/agents/steered/1/dispatch", "/agents/steered/1"];
  const bodies = [
    { input: "x", join: "now" },
    { message: "x", join: "next_turn" },
  ];
  for (const [at, path] of paths.entries())
    expect(await served.send(path, { body: bodies[at] })).toMatchObject({
      status: 400,
      body: { error: { type: "invalid_request" } },
    });
});
