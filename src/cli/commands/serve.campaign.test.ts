import { createServer } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, afterEach, expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { withoutKeys } from "../testing/agents-project.ts";
import { beginProcess, runKit } from "../testing/run-kit.ts";
import { createSampleProject } from "../testing/sample-project.ts";
import { endAll, type Running, type ServedKit, serveKit } from "../testing/served-kit.ts";

const project = await createSampleProject();
const running: Running = new Map();
afterEach(() => endAll(running));
afterAll(() => project[Symbol.asyncDispose]());

/** Starts a server of the sample project and waits until it says where it is. */
function serve(
  command: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<ServedKit> {
  return serveKit(running, [command, ...args], { cwd: project.root, env });
}

/** The same in a process of its own. */
function launch(command: string, ...args: readonly string[]): Promise<ServedKit> {
  return serveKit(running, [command, ...args], { cwd: project.root, begin: beginProcess });
}

test("start prints its address and three commands that work, and drains on SIGTERM", async () => {
  const { url, stdout, stop } = await launch("start", "--port", "0");
  expect(await (await fetch(`${url}/health`)).json()).toMatchObject({ ok: true, name: "kit" });
  const [forFile = "", search = ""] = stdout().match(/http:\S+\/api\/\S+\?\S+/g) ?? [];
  expect(await (await fetch(forFile)).json()).toMatchObject({ guidelines: expect.any(Array) });
  const found = (await (await fetch(search)).json()) as { total_count: number };
  expect(found.total_count).toBeGreaterThan(0);
  const body = /-d '(.*)'/.exec(stdout())?.[1] ?? "";
  const impact = await fetch(`${url}/api/specs/impact`, {
    method: "POST",
    body,
    headers: { "content-type": "application/json" },
  });
  expect(((await impact.json()) as { affected: unknown[] }).affected.length).toBeGreaterThan(0);
  expect(await stop("SIGTERM")).toBe(0);
});

test("a server that stops while it indexes its project for the first time does not wait for the end", async () => {
  const rules = Array.from({ length: 1_000 }, (_, n) => `## Rule ${n}\n\ntext\n`).join("\n");
  const files = Array.from({ length: 80 }, (_, n) => [`p${n}/CLAUDE.md`, rules] as const);
  await using folder = await createTemporaryRepository(Object.fromEntries(files));
  const { stop } = await serveKit(running, ["start", "--port", "0"], { cwd: folder.root });
  expect(await stop("SIGTERM")).toBe(0);
  using index = new DatabaseSync(join(folder.root, ".kit/index.db"));
  // The pass writes the files in batches, and may not have begun.
  expect(index.prepare("SELECT count(*) AS count FROM files").get()?.count).toBeLessThan(files.length);
});

test("a server with keys prints how to send one, and prints no key", async () => {
  const open = await serve("start", ["--port", "0"]);
  expect(await open.stop("SIGTERM")).toBe(0);
  expect(open.stdout()).toContain("Three things to try");
  expect(open.stdout()).not.toContain("Authorization");
  const asking = await serve("start", ["--port", "0"], { KIT_API_KEYS: "secret-key-for-a-test" });
  expect(await asking.stop("SIGTERM")).toBe(0);
  expect(asking.stdout()).toContain("-H 'Authorization: Bearer <key>'");
  expect(asking.stdout()).not.toContain("secret-key-for-a-test");
});

test("the banner does not suggest an agent without triggers, but tells how to make it reachable", async () => {
  await using folder = await createTemporaryRepository({
    "package.json": '{"type": "module"}',
    "src/agents/writer.ts":
      'import { createAgent } from "kit";\nexport default createAgent({ allowWrite: true });\n',
  });
  const prompt = async (url: string): Promise<number> => {
    const headers = { "content-type": "application/json" };
    const sent = { method: "POST", headers, body: '{"message": "hello"}' };
    return (await fetch(`${url}/agents/writer/1`, sent)).status;
  };
  const start = async (...args: readonly string[]): Promise<ServedKit> =>
    serveKit(running, [...args, "--port", "0"], { cwd: folder.root, env: withoutKeys });
  const started = await start("start");
  expect(started.stdout()).not.toContain(`${started.url}/agents/`);
  await started.hasOutput(
    "writer: not served over HTTP (404 agent_not_webhook). To serve one: export const triggers",
  );
  expect(await prompt(started.url)).toBe(404);
  expect(await started.stop("SIGTERM")).toBe(0);
  const dev = await start("dev");
  expect(dev.stdout()).not.toContain(`${dev.url}/agents/`);
  await dev.hasOutput("writer: served because this is kit dev, not by kit start.");
  expect(await prompt(dev.url)).toBe(200);
  expect(await dev.stop("SIGTERM")).toBe(0);
});

test("--json prints the address as JSON, and a route returns the same body as the command with --json", async () => {
  const { url, stdout, stop } = await serve("start", ["--port", "0", "--json"]);
  expect(JSON.parse(stdout())).toMatchObject({ url, host: "127.0.0.1", port: Number(new URL(url).port) });
  for (const [route, args] of [
    ["/api/specs?limit=3", ["specs", "list", "--limit", "3"]],
    ["/api/specs/fw_a-checkout-requirements-req1", ["specs", "show", "fw_a-checkout-requirements-req1"]],
    ["/api/specs/graph", ["specs", "graph"]],
    ["/api/guidelines?source=fw_c", ["guidelines", "list", "--source", "claude"]],
  ] as const) {
    const { stdout: printed } = await runKit([...args, "--json"], { cwd: project.root });
    expect(JSON.parse(printed)).toEqual(await (await fetch(url + route)).json());
  }
  expect(await stop("SIGINT")).toBe(0);
});

test("the default port falls back to the next free one, and a chosen port that is in use is an error", async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
  const address = taken.address();
  const port = String(typeof address === "object" ? address?.port : "");
  const refused = await runKit(["start", "--port", port], { cwd: project.root });
  expect(refused).toMatchObject({ exitCode: 1, stdout: "" });
  expect(refused.stderr).toContain(`already listening on 127.0.0.1:${port}`);
  taken.close();
  const [first, second] = [await serve("start", []), await serve("start", [])];
  expect(first.url).not.toBe(second.url);
});

test("a public address without keys is refused, and accepted with --insecure or keys", async () => {
  const refused = await runKit(["start", "--host", "0.0.0.0", "--port", "0"], { cwd: project.root });
  expect(refused).toMatchObject({ exitCode: 1, stdout: "" });
  expect(refused.stderr).toContain("--insecure");
  const { url } = await serve("start", ["--host", "0.0.0.0", "--port", "0"], {
    KIT_API_KEYS: "secret-key-for-a-test",
  });
  expect((await fetch(`${url}/api/specs`)).status).toBe(401);
  const headers = { authorization: "Bearer secret-key-for-a-test" };
  expect((await fetch(`${url}/api/specs`, { headers })).status).toBe(200);
});

test("a key that commands send is never used silently as a key that the server requires", async () => {
  const { url, hasOutput } = await serve("start", ["--port", "0"], { KIT_API_KEY: "key-of-commands" });
  await hasOutput("KIT_API_KEYS are those of a server");
  expect((await fetch(`${url}/api/specs`)).status).toBe(200);
  const asking = await runKit(["logs"], { cwd: project.root, env: { KIT_API_KEY: "key-of-commands" } });
  expect([asking.exitCode, asking.stderr]).toEqual([0, expect.not.stringContaining("KIT_API_KEY")]);
});

test("--env sets variables that the environment lacks", async () => {
  await project.write("serve.env", "KIT_API_KEYS=another-key-for-a-test\n");
  const { url } = await serve("start", ["--port", "0", "--env", "serve.env"]);
  expect((await fetch(`${url}/api/specs`)).status).toBe(401);
  const missing = await runKit(["start", "--env", "nowhere.env"], { cwd: project.root });
  expect(missing).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining("nowhere.env cannot be read"),
  });
});

test("--read-only refuses writes", async () => {
  const { url } = await serve("start", ["--port", "0", "--read-only"]);
  const list = (await (await fetch(`${url}/api/guidelines`)).json()) as { guidelines: { id: string }[] };
  const reply = await fetch(`${url}/api/guidelines/convert`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ guideline_id: list.guidelines[0]?.id, format: "steering", preview: false }),
  });
  expect(reply.status).toBe(403);
});

test("dev logs requests and changes, and puts no stack into a refusal", async () => {
  const { url, stderr, stop } = await serve("dev", ["--port", "0"]);
  const refusal = await (await fetch(`${url}/api/specs/nothing`)).text();
  expect(refusal).toContain("spec_not_found");
  expect(refusal).not.toContain("stack");
  expect(stderr()).toMatch(/404 +[\d.]+ ms {2}GET \/api\/specs\/nothing\n/);
  await project.write(".kiro/specs/checkout/extra.md", "# Nothing\n");
  await project.write("CLAUDE.md", "## Newcomer\n\nSaid just now.\n");
  await expect
    .poll(async () => (await fetch(`${url}/api/guidelines?q=newcomer`)).text())
    .toContain("Said just now");
  await expect.poll(() => stderr()).toContain("files changed: read 1 file again");
  expect(await stop("SIGINT")).toBe(0);
});

test("a second server of a project reports the first, and commands keep calling the first", async () => {
  const first = await launch("start", "--port", "0");
  const second = await launch("start", "--port", "0");
  await second.hasOutput(`already (process`);
  expect(second.stderr()).toContain(first.url);
  const standing = await runKit(["logs", "--json"], { cwd: project.root });
  expect(standing.exitCode).toBe(0);
  expect(await second.stop("SIGTERM")).toBe(0);
  const reply = await runKit(["invoke", "absent", "1", "-m", "x"], { cwd: project.root });
  expect(reply.stderr).toContain("There is no agent of this name.");
  expect(await first.stop("SIGTERM")).toBe(0);
  const none = await runKit(["invoke", "absent", "1", "-m", "x"], { cwd: project.root });
  expect(none.stderr).toContain("No server runs for this project.");
});

test("--log writes a line for every request without its query, and names the setting that admits a page", async () => {
  for (const format of ["text", "json"]) {
    const served = await serve("start", ["--port", "0", "--log", format], {
      KIT_API_KEYS: "key-of-the-log-test",
    });
    const headers = { authorization: "Bearer key-of-the-log-test" };
    await fetch(`${served.url}/api/specs?q=canary`, { headers });
    const refused = await fetch(`${served.url}/health`, { headers: { origin: "https://app.example" } });
    expect(refused.status).toBe(403);
    await fetch(`${served.url}/health`, { headers: { origin: "https://app.example" } });
    await served.stop("SIGTERM");
    const log = served.stderr();
    expect(log).not.toMatch(/canary|key-of-the-log-test/);
    const advice =
      'A page of https://app.example was refused. To allow it, set server.allowed_origins = ["https://app.example"].';
    const lines = log.trimEnd().split("\n");
    if (format === "json") {
      const entries = lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
      const [request] = entries.filter(({ path }) => path === "/api/specs");
      expect(request).toMatchObject({
        type: "request",
        method: "GET",
        status: 200,
        principal: expect.stringMatching(/^key_/),
      });
      expect(entries.filter(({ message }) => message === advice)).toHaveLength(1);
    } else {
      expect(log).toMatch(/^\S+Z {2}200 +[\d.]+ ms {2}key_\w+ {2}GET \/api\/specs$/m);
      expect(lines.filter((line) => line.endsWith(advice))).toHaveLength(1);
    }
  }
});
