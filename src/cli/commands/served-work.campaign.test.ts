import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "vitest";
import type { DeliveryPage } from "../../protocol/dispatch.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { bootMark, type RunningServer } from "../running-server.ts";
import { withoutKeys } from "../testing/agents-project.ts";
import { beginKit, beginProcess, type RunResult, runKit } from "../testing/run-kit.ts";
import { endAll, type Running, type ServedKit, serveKit } from "../testing/served-kit.ts";

// The built-in model looks up which guidelines apply to a file that it is asked about.
const question = "Which rules apply to src/money.ts?";

const folder = await createTemporaryRepository({
  "package.json": '{"type": "module"}',
  "AGENTS.md": "## Money\n\nAmounts are whole cents.\n",
  "src/money.ts": "export const euro = 100;\n",
  "src/agents/careful.ts": `import { createAgent } from "kit";
export const triggers = { webhook: true };
export default createAgent({ approvals: { tools: ["guidelines_for"] } });
`,
  "kit.toml":
    '[providers.local]\nbase_url = "http://127.0.0.1:1/v1"\n\n[agent.approvals]\ntools = ["guidelines_for"]\n',
  "src/agents/asked.ts": `import { createAgent } from "kit";
export const triggers = { webhook: true };
export default createAgent({});
`,
  "src/agents/unreachable.ts": `import { createAgent } from "kit";
export const triggers = { webhook: true };
export default createAgent({ model: "local/none" });
`,
  "src/workflows/release.ts": `import type { KitContext } from "kit";
export async function run(ctx: KitContext) {
  const built = await ctx.step("build", () => "v1");
  ctx.log.info("Built", { built });
  const answer = await ctx.waitFor<{ approved: boolean }>("approval");
  return answer?.approved === true ? \`released \${built}\` : "not released";
}
`,
  "src/workflows/endless.ts": `import type { KitContext } from "kit";
export async function run(ctx: KitContext) {
  await ctx.step("endless", () => new Promise(() => undefined));
}
`,
  "src/webhooks/night.ts": `import { defineWebhook } from "kit/webhooks";
export default defineWebhook({
  scheme: "github",
  secret: () => "night secret",
  handle: async ({ startRun }) => [(await startRun("release")).runId],
});
`,
  "src/workflows/failing.ts": `import type { KitContext } from "kit";
export async function run(ctx: KitContext) {
  await ctx.step("publish", () => {
    throw new Error("the registry is closed");
  });
}
`,
});
const running: Running = new Map();
afterEach(() => endAll(running));
afterAll(() => folder[Symbol.asyncDispose]());

const kit = (...args: readonly string[]): Promise<RunResult> =>
  runKit(args, { cwd: folder.root, env: withoutKeys });
const serve = (command: "start" | "dev", begin = beginKit): Promise<ServedKit> =>
  serveKit(running, [command, "--port", "0"], { cwd: folder.root, env: withoutKeys, begin });

/** Waits until a run has come that far. */
async function until(id: string, status: string): Promise<void> {
  await expect
    .poll(async () => JSON.parse((await kit("runs", "show", id, "--json")).stdout).status)
    .toBe(status);
}

/** A command beside the test, with all that it says. */
function begin(...args: readonly string[]) {
  const line = beginKit(args, { cwd: folder.root, env: withoutKeys });
  running.set(line, "SIGTERM");
  let text = "";
  const collect = (chunk: Buffer): void => {
    text += chunk;
  };
  line.stdout.on("data", collect);
  line.stderr.on("data", collect);
  return { text: () => text, stop: () => line.signal("SIGINT"), ended: line.ended };
}

test("a started run is followed across the death of its server, and signalled until its end", async () => {
  const first = await serve("start", beginProcess);
  const { stdout } = await kit("invoke", "release", "--dispatch");
  const id = stdout.trim();
  expect(id).toMatch(/^run_/);
  const log = begin("logs", id, "--follow");
  await expect.poll(log.text).toContain('Built {"built":"v1"}');
  await first.stop("SIGKILL");
  await expect.poll(log.text).toContain("The server has stopped.");

  await serve("start");
  expect(await kit("runs", "signal", id, "approval", "--payload", '{"approved": true}')).toMatchObject({
    exitCode: 0,
  });
  expect(await log.ended).toBe(0);
  expect(log.text().match(/step build done/g)).toHaveLength(1);
  expect(log.text()).toMatch(/run of release done in .*\ncompleted/);
  const output = await kit("runs", "show", id);
  expect(output.stdout).toMatch(/^status +completed$/m);
  expect(output.stdout.trimEnd().split("\n").at(-1)).toBe("released v1");
});

test("an answered delivery is listed with its work after its server was killed", async () => {
  const first = await serve("start", beginProcess);
  const body = '{"night": 1}';
  const digest = createHmac("sha256", "night secret").update(body).digest("hex");
  const headers = { "content-type": "application/json", "x-hub-signature-256": `sha256=${digest}` };
  const reply = await fetch(`${first.url}/webhooks/night`, { method: "POST", headers, body });
  expect(reply.status).toBe(200);
  const runs = (await reply.json()) as readonly string[];
  await first.stop("SIGKILL");
  const { url } = await serve("start");
  const { deliveries } = (await (await fetch(`${url}/deliveries`)).json()) as DeliveryPage;
  expect(deliveries).toMatchObject([{ webhook: "night", outcome: "accepted", status: 200, runs }]);
  for (const id of runs) await kit("runs", "cancel", id);
});

test("Ctrl-C lets work finish and reports that, and a second Ctrl-C ends at once", async () => {
  const served = await serve("start", beginProcess);
  const id = (await kit("invoke", "endless", "--dispatch")).stdout.trim();
  await until(id, "running");
  const ended = served.stop("SIGINT");
  await served.hasOutput("Ctrl-C again ends them at once");
  await served.stop("SIGINT");
  expect(await ended).toBe(130);
  expect(JSON.parse((await kit("runs", "show", id, "--json")).stdout).status).toBe("running");
  await kit("runs", "cancel", id);
});

test("a run that is cancelled while it works is reported as cancelled", async () => {
  await serve("start");
  const id = (await kit("invoke", "endless", "--dispatch")).stdout.trim();
  const log = begin("logs", id, "--follow");
  await expect.poll(log.text).toContain("run of endless");
  await kit("runs", "cancel", id);
  expect(await log.ended).toBe(0);
  expect(log.text()).toMatch(/step endless aborted in .*\n.*run of endless cancelled in .*\ncancelled/);
});

test("a server that does not answer counts as stopped, even if its process still exists", async () => {
  // The rest of it is alive, and listens to nothing.
  const announced: RunningServer = {
    url: "http://127.0.0.1:1",
    pid: process.pid,
    started_at: "2026-11-21T00:00:00.000Z",
    boot: bootMark(),
  };
  await folder.write(`.kit/servers/${process.pid}.json`, JSON.stringify(announced));
  expect(await kit("runs", "list", "--json")).toMatchObject({ exitCode: 0, stderr: "" });
  expect((await kit("invoke", "careful", "one", "-m", "x")).stderr).toContain("No server runs");
});

test("without a server, runs are listed, signalled and cancelled in the files", async () => {
  const served = await serve("start");
  const ids = await Promise.all(
    [1, 2].map(async () => (await kit("invoke", "release", "--dispatch")).stdout.trim()),
  );
  const [going = "", stopped = ""] = ids;
  for (const id of ids) await until(id, "waiting");
  await served.stop("SIGTERM");
  expect((await kit("runs", "cancel", stopped)).stderr).toBe("Cancelled.\n");
  expect(await kit("runs", "cancel", stopped)).toMatchObject({
    exitCode: 1,
    stderr: "It had ended already.\n",
  });
  expect((await kit("runs", "show", going)).stdout).toMatch(/^waits for +approval$/m);
  expect((await kit("logs", going)).stderr).toMatch(/^waiting for approval \(\d+ events\)$/m);
  expect(await kit("runs", "signal", going, "aproval")).toMatchObject({
    exitCode: 0,
    stderr: "Accepted and stored: nothing in the run waits for aproval yet. It waits for approval.\n",
  });
  expect(await kit("runs", "signal", going, "approval")).toMatchObject({
    exitCode: 0,
    stderr: "Accepted.\n",
  });
  const listed = await kit("runs", "list", "--status", "cancelled", "--workflow", "release");
  expect(listed.stdout.split("\t").slice(0, 3)).toEqual([stopped, "release", "cancelled"]);
  await serve("start");
  const log = await kit("logs", going, "--follow");
  expect(log.stderr).toMatch(/^completed/);
  expect(JSON.parse((await kit("runs", "show", going, "--json")).stdout).result).toBe("not released");
});

test("kit invoke runs a workflow and prints its failure, and kit dev shows the cause to the author", async () => {
  const served = await serve("dev");
  const failed = await kit("invoke", "failing");
  expect(failed).toMatchObject({ exitCode: 1, stdout: "" });
  expect(failed.stderr).toContain('error: The step "publish" failed.');
  const why = "the registry is closed (src/workflows/failing.ts:4)";
  expect(failed.stderr).toContain(`cause: ${why}`);
  await served.hasOutput("the registry is closed (src/workflows/failing.ts:4)");
  const streamed = await kit("invoke", "failing", "--stream", "--json");
  const lines = streamed.stdout.trimEnd().split("\n");
  expect(lines.map((line) => JSON.parse(line).type)).toEqual([
    "run_start",
    "step_start",
    "step_end",
    "run_end",
    "error",
  ]);
});

test("the cause of a failed dispatch is in the server's log, because no caller waits for it", async () => {
  const served = await serve("start");
  const { stdout } = await kit("invoke", "unreachable", "one", "-m", "x", "--dispatch");
  await served.hasOutput(`${stdout.trim()} The model could not be reached`);
  const { checks } = JSON.parse((await kit("doctor", "--json")).stdout);
  expect(checks).toContainEqual({
    name: "server",
    status: "ok",
    message: expect.stringContaining(served.url),
  });
  expect(checks).toContainEqual(expect.objectContaining({ name: "dispatches" }));
  expect(served.stderr()).toMatch(/answer could not be read\. Cannot connect/);
});

test("a waiting call is listed, approved and denied on the command line", async () => {
  await serve("start");
  const approving = begin("invoke", "careful", "one", "-m", question);
  await expect.poll(approving.text).toContain("guidelines_for waits for approval: kit ");
  const runId = (await kit("invoke", "release", "--dispatch")).stdout.trim();
  await until(runId, "waiting");
  expect((await kit("approvals", "list")).stdout).toContain(`${runId}\trelease\tapproval`);
  const words = /kit (approvals approve \S+)/.exec(approving.text())?.[1]?.split(" ") ?? [];
  for (const filter of [[], ["careful"], ["careful", "one"]]) {
    const { stdout } = await kit("approvals", "list", ...filter);
    expect(stdout).toMatch(/\tcareful\/one\tdefault\t.*guidelines_for src\/money\.ts$/m);
  }
  expect((await kit("approvals", "list", "careful", "two")).stderr).toBe("No call waits for approval.\n");
  expect(await kit(...words)).toMatchObject({
    exitCode: 0,
    stderr: "Approved: careful/one: guidelines_for src/money.ts\n",
  });
  expect(await approving.ended).toBe(0);
  expect(approving.text()).toContain("Amounts are whole cents.");
  const late = await kit(...words);
  expect(late).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining("kit approvals list"),
  });

  const denied = begin("invoke", "careful", "two", "-m", question);
  await expect.poll(denied.text).toContain("waits for approval");
  const [, , id = ""] = /kit (.*)/.exec(denied.text())?.[1]?.split(" ") ?? [];
  await kit("approvals", "deny", `…${id.slice(-8)}`, "--reason", "Not today.");
  expect(await denied.ended).toBe(0);
  expect(denied.text()).not.toContain("Amounts are whole cents.");
});

test("a call is always allowed by a rule that is shown before it is written", async () => {
  await serve("start");
  const asking = begin("invoke", "asked", "one", "-m", question);
  await expect.poll(asking.text).toContain("waits for approval");
  const [, , id = ""] = /kit (.*)/.exec(asking.text())?.[1]?.split(" ") ?? [];
  const rules = await kit("approvals", "allow", id);
  expect(rules).toMatchObject({
    exitCode: 0,
    stderr: expect.stringContaining("1. guidelines_for with exactly these"),
  });
  const before = readFileSync(join(folder.root, "kit.toml"), "utf8");
  expect((await kit("approvals", "allow", id, "--rule", "9")).stderr).toContain("There is no rule 9.");
  const written = await kit("approvals", "allow", id, "--rule", "2");
  expect(written).toMatchObject({ exitCode: 0, stderr: expect.stringContaining("it holds from now on") });
  expect(await asking.ended).toBe(0);
  expect(readFileSync(join(folder.root, "kit.toml"), "utf8")).toBe(
    `${before}\n[[agent.approvals.allow]]\ntool = "guidelines_for"\nagent = "asked"\n`,
  );
  expect(await kit("invoke", "asked", "two", "-m", question)).toMatchObject({ exitCode: 0 });
});

test("Ctrl-C stops a prompt and reports that, but a prompt with an idempotency key continues", async () => {
  await serve("start");
  for (const [id, key, output] of [
    ["left", [], "Stopped. The session keeps what was done so far."],
    ["keyed", ["--idempotency-key", "k1"], "The work continues: repeat the command to wait for its answer."],
  ] as const) {
    const prompt = begin("invoke", "careful", id, "-m", question, ...key);
    await expect.poll(prompt.text).toContain("waits for approval");
    prompt.stop();
    expect(await prompt.ended).toBe(130);
    expect(prompt.text()).toContain(output);
  }
  const listed = async (): Promise<string> => (await kit("approvals", "list", "careful")).stdout;
  await expect.poll(listed).toMatch(/^[^\n]*\tcareful\/keyed\t[^\n]*\n$/);
  // The server would wait for it at its end.
  await kit("approvals", "deny", (await listed()).split("\t", 1)[0] ?? "");
});

test("an ended run is retried, and run again with its payload, with a server and without", async () => {
  const served = await serve("start");
  const payload = { payload: { text: "only this" } };
  const failed = (await kit("invoke", "failing", "--dispatch", "--payload", JSON.stringify(payload))).stdout;
  const why = "the registry is closed (src/workflows/failing.ts:4)";
  const log = await kit("logs", failed.trim(), "--follow");
  expect(log.exitCode).toBe(1);
  expect(log.stdout).toContain(`step publish failed in`);
  expect(log.stdout).toContain(why);
  expect(log.stderr).toContain(`  ${why}`);
  expect((await kit("runs", "show", failed.trim())).stdout).toContain(why);
  const again = await kit("runs", "rerun", failed.trim());
  expect(again).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^run_\w+\n$/) });
  expect(again.stdout).not.toBe(failed);
  const output = JSON.parse((await kit("runs", "show", again.stdout.trim(), "--json")).stdout);
  const first = JSON.parse((await kit("runs", "show", failed.trim(), "--json")).stdout);
  expect(output).toMatchObject({ workflow: "failing", payload: first.payload });
  expect(await kit("runs", "retry", failed.trim())).toMatchObject({ exitCode: 0, stderr: "Queued again.\n" });
  await kit("logs", failed.trim(), "--follow");
  expect((await kit("runs", "show", failed.trim())).stdout).toContain(why);
  const waiting = (await kit("invoke", "release", "--dispatch")).stdout.trim();
  expect(await kit("runs", "retry", waiting)).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining("Only a run that has failed can be retried."),
  });
  expect(await kit("runs", "rerun", waiting)).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining("The run has not ended."),
  });
  await served.stop("SIGTERM");
  const offline = JSON.parse((await kit("runs", "rerun", failed.trim(), "--json")).stdout);
  const queued = JSON.parse((await kit("runs", "show", offline.run_id, "--json")).stdout);
  expect(queued).toMatchObject({ status: "queued", workflow: "failing", payload: first.payload });
  await kit("runs", "cancel", offline.run_id);
  expect(await kit("runs", "rerun", "run_none")).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining("'kit runs list' lists the runs."),
  });
});

test("arguments that have no effect are refused with what to do", async () => {
  expect(await kit("invoke", "release", "-m", "x")).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining("kit invoke release <id>"),
  });
  expect(await kit("runs", "show", "run_x")).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining("kit runs list"),
  });
  expect(await kit("runs", "list", "--status", "lost")).toMatchObject({ exitCode: 2 });
  expect(await kit("runs", "signal", "run_x", "word", "--payload", "{")).toMatchObject({ exitCode: 2 });
  await serve("start");
  const slashed = await kit("invoke", "careful", "a/b", "-m", "x");
  expect(slashed.exitCode).toBe(2);
  expect(slashed.stderr.match(/must not hold separators/g)).toHaveLength(1);
  expect(await kit("invoke", "careful")).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining("An agent takes an id"),
  });
});
