import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import type { ToolDefinition } from "../../agents/define/tool.ts";
import { campaignTest } from "../../testing/campaign.suite.ts";
import {
  callTool,
  createSkippingClock,
  isAlive,
  namesOf,
  openClient,
  openServer,
  textOf,
  toolServer,
  toolsAndProblems,
} from "../client.suite.ts";

async function logFile(): Promise<{ readonly path: string; read(): Promise<readonly string[]> }> {
  const folder = await mkdtemp(join(tmpdir(), "kit-mcp-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, "calls.log");
  const read = async (): Promise<readonly string[]> =>
    (await readFile(path, "utf8").catch(() => "")).split("\n").filter((line) => line !== "");
  return { path, read };
}

test("agents get every tool of a server with its description and schema", async () => {
  const client = openServer(toolServer());
  const { tools, problems } = await toolsAndProblems(client);
  expect(problems).toEqual([]);
  const echo = tools.find((tool) => tool.name === "mcp__s__echo");
  expect(echo).toMatchObject({ description: "Says what it is told.", idempotent: true });
  expect(echo?.input).toHaveProperty("~standard");
  expect(textOf(await callTool(client, "echo", { args: { text: "hello" } }))).toBe("hello");
});

test("results can be texts, images, structured content and errors", async () => {
  const client = openServer(toolServer());
  expect(textOf(await callTool(client, "add", { args: { a: 1, b: 2 } }))).toBe('{"sum":3}');
  const picture = await callTool(client, "picture");
  expect(textOf(picture)).toContain("A dot:\n[image/png]\n[Audio of type audio/wav");
  expect(textOf(picture)).toContain("[Resource file:///notes.md]\nremember");
  expect(await callTool(client, "fail")).toMatchObject({
    isError: true,
    content: [{ text: "It did not work." }],
  });
});

test("arguments are checked before the server sees them", async () => {
  const log = await logFile();
  const client = openServer(toolServer(log.path));
  const tools = (await client.tools()) as readonly ToolDefinition[];
  const echo = tools.find(({ name }) => name === "mcp__s__echo");
  const input = echo?.input as { "~standard": { validate(value: unknown): Promise<{ issues?: unknown[] }> } };
  expect((await input["~standard"].validate({ text: 7 })).issues).toEqual([
    { message: "text: must be string, not number" },
  ]);
  expect((await input["~standard"].validate(["hello"])).issues).toHaveLength(1);
  expect((await input["~standard"].validate({ text: "hello" })).issues).toBeUndefined();
  expect(await log.read()).toEqual([]);
});

test("unchanged tools are the same objects, and new tools are noticed", async () => {
  const client = openServer(toolServer());
  const before = await client.tools();
  const again = await client.tools();
  expect(again.every((tool, index) => tool === before[index])).toBe(true);
  await callTool(client, "change");
  await expect.poll(() => namesOf(client)).toContain("mcp__s__extra");
  const after = await client.tools();
  for (const tool of before) expect(after).toContain(tool);
  expect(textOf(await callTool(client, "extra"))).toBe("extra");
});

test("a server starts on first use, and ends with the client", async () => {
  const log = await logFile();
  const client = openServer(toolServer(log.path));
  expect(client.problems()).toEqual([]);
  const { pid } = JSON.parse(textOf(await callTool(client, "environment")));
  const child = Number(textOf(await callTool(client, "child")));
  expect(isAlive(pid) && isAlive(child)).toBe(true);
  await client.close();
  expect(isAlive(pid)).toBe(false);
  await expect.poll(() => isAlive(child)).toBe(false);
  await expect(client.close()).resolves.toBeUndefined();
});

campaignTest("a program that ends without closing leaves no process behind", async () => {
  const from = (file: string): string => JSON.stringify(new URL(file, import.meta.url).href);
  const script = `
    const { createMcpClient } = await import(${from("../create-mcp-client.ts")});
    const config = { servers: { s: ${JSON.stringify(toolServer())} } };
    const client = createMcpClient({ config, root: ".", env: process.env, validateJson: () => [] });
    const child = (await client.tools()).find((tool) => tool.name === "mcp__s__child");
    const { content } = await child.execute({}, { signal: new AbortController().signal });
    process.stdout.write(content[0].text);
    throw new Error("The program failed.");`;
  const { stdout } = await promisify(execFile)(process.execPath, [
    "--input-type=module",
    "--eval",
    script,
  ]).catch((error: { readonly stdout: string }) => error);
  const child = Number(stdout);
  expect(child).toBeGreaterThan(0);
  await expect.poll(() => isAlive(child)).toBe(false);
});

test("concurrent callers share one process", async () => {
  const client = openServer(toolServer());
  await Promise.all([client.tools(), client.tools(), client.tools()]);
  const outputs = await Promise.all([1, 2, 3].map(() => callTool(client, "environment")));
  const pids = outputs.map((output) => JSON.parse(textOf(output)).pid as number);
  expect(new Set(pids).size).toBe(1);
});

test("a server sees PATH and its configured variables, nothing else of kit's environment", async () => {
  const env = { PATH: process.env.PATH, KIT_TEST_SECRET: "s3cret-value", GIVEN: "yes", HOME: "/root" };
  const client = openServer({ ...toolServer(), env: ["GIVEN"], cwd: "src" }, { env });
  const { env: seen, cwd } = JSON.parse(textOf(await callTool(client, "environment")));
  expect(seen).toEqual({ PATH: process.env.PATH, GIVEN: "yes" });
  expect(cwd).toBe(join(process.cwd(), "src"));
});

test("allow and deny choose tools, and a name that matches none is reported", async () => {
  const client = openServer({ ...toolServer(), allow: ["e*", "add", "ad"], deny: ["environment"] });
  const { tools, problems } = await toolsAndProblems(client);
  expect(tools.map((tool) => tool.name)).toEqual(["mcp__s__add", "mcp__s__echo"]);
  expect(problems).toEqual([
    { server: "s", message: '`allow` names "ad", but no tool of the server has that name.' },
  ]);
});

test("a call interrupted by a crash has an unknown outcome and is not repeated, and the next call works", async () => {
  const log = await logFile();
  const client = openServer(toolServer(log.path));
  const output = await callTool(client, "crash", { args: { code: 3 } });
  expect(output).toMatchObject({ isError: true, outcome: "unknown" });
  expect(textOf(output)).toContain("Its process ended with code 3. It is unknown whether the call was done");
  expect(await log.read()).toEqual(["crash"]);
  await expect
    .poll(async () => textOf(await callTool(client, "echo", { args: { text: "back" } })))
    .toBe("back");
  expect(client.problems()).toEqual([]);
});

test("a read-only call is repeated once after a crash", async () => {
  const log = await logFile();
  const client = openServer(toolServer(log.path));
  const output = await callTool(client, "crash_while_reading", { args: { code: 1 } });
  expect(output).toMatchObject({ isError: true, outcome: "unknown" });
  expect(await log.read()).toEqual(["crash_while_reading", "crash_while_reading"]);
});

campaignTest("a server that keeps crashing is restarted after longer and longer pauses", async () => {
  const client = openServer(toolServer(), { clock: createSkippingClock() });
  await callTool(client, "echo", { args: { text: "works" } });
  const lines: string[] = [];
  for (let count = 0; count < 5; count += 1)
    lines.push(textOf(await callTool(client, "crash", { args: { code: 1 } })));
  expect(lines.at(-1)).toMatch(/kit tries again in \d+ seconds\. The call was not done\./);
  expect(client.problems()[0]?.message).toContain("Its process ended with code 1.");
});

test("an abort reaches the server, and the connection stays open", async () => {
  const log = await logFile();
  const client = openServer(toolServer(log.path));
  const controller = new AbortController();
  const waiting = callTool(client, "wait", { args: { ms: 60_000 }, signal: controller.signal });
  await expect.poll(() => log.read()).toEqual(["wait"]);
  controller.abort(new Error("Enough."));
  await expect(waiting).rejects.toThrow("Enough.");
  await expect.poll(() => log.read()).toEqual(["wait", "wait cancelled"]);
  expect(textOf(await callTool(client, "echo", { args: { text: "on" } }))).toBe("on");
});

campaignTest("a call that takes too long is cancelled, and its outcome is unknown", async () => {
  const log = await logFile();
  const client = openServer({ ...toolServer(log.path), timeout_seconds: 8 });
  const output = await callTool(client, "wait", { args: { ms: 60_000 } });
  expect(output).toMatchObject({ isError: true, outcome: "unknown" });
  expect(textOf(output)).toContain("It did not answer within 8 seconds.");
  await expect.poll(() => log.read()).toEqual(["wait", "wait cancelled"]);
});

campaignTest("kit waits for a slow server, even if it is silent until it has started", async () => {
  const client = openServer({ ...toolServer("", "late=1500"), timeout_seconds: 40 });
  expect(await namesOf(client)).toContain("mcp__s__echo");
});

test("a server that is down does not affect other servers", async () => {
  const client = openClient({
    servers: {
      up: { ...toolServer(), allow: ["echo"] },
      down: { command: "kit-has-no-such-command" },
      unset: { command: "x", env: ["KIT_HAS_NO_SUCH_VARIABLE"] },
    },
  });
  const { tools, problems } = await toolsAndProblems(client);
  expect(tools.map((tool) => tool.name)).toEqual(["mcp__up__echo"]);
  expect(problems).toEqual([
    {
      server: "down",
      message: "It is not available. Its command or its working folder does not exist.",
    },
    { server: "unset", message: "It is not available. It needs KIT_HAS_NO_SUCH_VARIABLE, which is not set." },
  ]);
  expect(client.problems()).toEqual(problems);
});
