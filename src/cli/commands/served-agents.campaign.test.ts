import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createServedProject, withoutKeys } from "../testing/agents-project.ts";
import { beginProcess, type RunResult, runKit } from "../testing/run-kit.ts";
import { endAll, type Running, type ServedKit, serveKit } from "../testing/served-kit.ts";

const { project, server } = await createServedProject();
const running: Running = new Map();
beforeEach(() => server.script([]));
afterEach(() => endAll(running));

const kit = (...args: readonly string[]): Promise<RunResult> =>
  runKit(args, { cwd: project.root, env: withoutKeys });
const serve = (command: "start" | "dev"): Promise<ServedKit> =>
  serveKit(running, [command, "--port", "0"], { cwd: project.root, env: withoutKeys });

describe("kit invoke", () => {
  test("prompts an agent of the project's running server, and continues its session", async () => {
    await serve("start");
    server.script([{ text: "First." }, { text: "Second." }]);
    const first = await kit("invoke", "reviewer", "pr-1", "-m", "Look.");
    expect(first).toMatchObject({ exitCode: 0, stdout: "First.\n", stderr: "" });
    const second = await kit("invoke", "reviewer", "pr-1", "--payload", '{"message":"Again."}', "--json");
    expect(JSON.parse(second.stdout)).toMatchObject({ result: { text: "Second.", usage: {} } });
    expect(JSON.stringify(server.requests.at(-1))).toContain("First.");
  });

  test("--stream shows the work as it happens, with --json as one event per line", async () => {
    await serve("start");
    server.script([{ text: "Streamed." }, { text: "Again." }]);
    const output = await kit("invoke", "reviewer", "pr-2", "-m", "Look.", "--stream");
    expect(output.stdout).toBe("Streamed.\n");
    const { stdout } = await kit("invoke", "reviewer", "pr-2", "-m", "Look.", "--stream", "--json");
    const lines = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.map(({ type }) => type)).toContain("text_delta");
    expect(lines.at(-1)).toMatchObject({ type: "result", result: { text: "Again." } });
  });

  test("reports a missing server, a missing message and an unknown agent", async () => {
    const none = await kit("invoke", "reviewer", "1", "-m", "x");
    expect(none).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("No server runs") });
    expect(await kit("invoke", "reviewer", "1")).toMatchObject({ exitCode: 2 });
    await serve("start");
    const unknown = await kit("invoke", "absent", "1", "-m", "x");
    expect(unknown).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("kit routes") });
  });
});

describe("kit dispatches", () => {
  test("an accepted input is worked on by the next start after the server was killed", async () => {
    const first = await serveKit(running, ["start", "--port", "0"], {
      cwd: project.root,
      env: withoutKeys,
      begin: beginProcess,
    });
    server.script([{ answer: { text: "Never said." }, silentAfter: 1 }]);
    const { stdout } = await kit("invoke", "reviewer", "killed", "-m", "Do it.", "--dispatch");
    const id = stdout.trim();
    expect(id).toMatch(/^dispatch_/);
    await first.stop("SIGKILL");
    const waiting = JSON.parse((await kit("dispatches", "show", id, "--json")).stdout);
    expect(["queued", "running"]).toContain(waiting.status);

    server.script([{ text: "Done." }]);
    const second = await serve("start");
    const reply = await fetch(`${second.url}/agents/reviewer/killed/events`, {
      headers: { accept: "text/event-stream" },
    });
    for await (const chunk of reply.body ?? []) {
      if (new TextDecoder().decode(chunk).includes("event: operation\n")) break;
    }
    const listed = await kit("dispatches", "list", "--agent", "reviewer", "--id", "killed");
    expect(listed.stdout).toContain(`${id}\treviewer/killed\tcompleted`);
    const history = (await (await fetch(`${second.url}/agents/reviewer/killed/history`)).json()) as {
      messages: { role: string }[];
    };
    expect(history.messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
  });

  test("refuses unknown ids and statuses", async () => {
    expect(await kit("dispatches", "show", "dispatch_x")).toMatchObject({ exitCode: 1 });
    expect(await kit("dispatches", "list", "--status", "lost")).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("queued, running, completed, failed, cancelled"),
    });
  });
});

describe("kit logs", () => {
  test("lists runs and shows what one did, with a server and without", async () => {
    const served = await serve("start");
    const reply = await fetch(`${served.url}/workflows/count?wait=result`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"payload":{"text":"one two"}}',
    });
    const { run_id } = (await reply.json()) as { run_id: string };
    for (const stop of [undefined, "SIGTERM"] as const) {
      if (stop !== undefined) await served.stop(stop);
      expect((await kit("logs")).stdout).toMatch(new RegExp(`^${run_id}\tcount\tcompleted\t`));
      const { exitCode, stdout } = await kit("logs", run_id, "--follow");
      expect(exitCode).toBe(0);
      expect(stdout.split("\n").map((line) => line.slice(26))).toEqual([
        "run of count",
        'Counting {"characters":7}',
        expect.stringMatching(/^run of count done in /),
        "",
      ]);
      const events = (await kit("logs", run_id, "--json")).stdout.trimEnd().split("\n");
      expect(events.map((line) => JSON.parse(line).type)).toEqual(["run_start", "log", "run_end"]);
    }
    expect(await kit("logs", "run_x")).toMatchObject({ exitCode: 1 });
  });
});

test("kit dev logs what agents do, and reloads a changed agent without losing its session", async () => {
  const served = await serve("dev");
  server.script([{ text: "Before." }, { text: "After." }]);
  await kit("invoke", "reviewer", "dev", "-m", "Look.");
  await served.hasOutput("reviewer/dev prompt done in");
  project.write(
    "src/agents/reviewer.ts",
    project.read("src/agents/reviewer.ts").replace("You review", "You read"),
  );
  await served.hasOutput("sources changed");
  await kit("invoke", "reviewer", "dev", "-m", "Again.");
  const sent = JSON.stringify(server.requests.at(-1));
  expect(sent).toContain("You read");
  expect(sent).toContain("Before.");
  expect(served.stderr()).toContain("error: src/agents/broken.ts");
});

test("a promise that an agent's code forgot to await is logged without the keys it quotes, and ends no other work", async () => {
  project.write(
    "src/agents/forgetful.ts",
    `import { createAgent, defineTool } from "kit";
const forget = defineTool({
  name: "forget",
  description: "Starts something and does not wait for it.",
  input: { type: "object", properties: {} },
  execute: async () => {
    Promise.reject(new Error("unawaited failure: " + process.env.DEPLOY_TOKEN));
    return "started";
  },
});
export const triggers = { webhook: true };
export default createAgent({ model: "local/reviewing", tools: [forget] });
`,
  );
  const token = "token-0123456789-abcdef";
  const served = await serveKit(running, ["start", "--port", "0"], {
    cwd: project.root,
    env: { ...withoutKeys, DEPLOY_TOKEN: token },
    begin: beginProcess,
  });
  server.script([
    { toolCall: { id: "1", name: "forget", args: "{}" } },
    { text: "It is started." },
    { text: "Here." },
  ]);
  const answered = await kit("invoke", "forgetful", "1", "-m", "Start it.");
  expect(answered).toMatchObject({ exitCode: 0, stdout: "It is started.\n" });
  await served.hasOutput("unawaited failure");
  expect(served.stderr()).not.toContain(token);
  expect(await kit("invoke", "reviewer", "after", "-m", "Look.")).toMatchObject({ stdout: "Here.\n" });
});
