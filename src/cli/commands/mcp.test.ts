import { afterAll, expect, test } from "vitest";
import { runKit, startKit } from "../testing/run-kit.ts";
import { createSampleProject } from "../testing/sample-project.ts";

const project = await createSampleProject();
afterAll(() => project[Symbol.asyncDispose]());

const initialize = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } },
};

test("the server speaks MCP on stdin and stdout, and writes nothing else there, until stdin ends", async () => {
  const child = startKit(["mcp"], { cwd: project.root });
  const lines: { id?: number; result?: { tools?: { name: string }[] } }[] = [];
  let rest = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop() ?? "";
    lines.push(...parts.map((part) => JSON.parse(part)));
  });
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  const print = (message: object): void => void child.stdin.write(`${JSON.stringify(message)}\n`);
  print(initialize);
  await expect.poll(() => lines.length).toBe(1);
  print({ jsonrpc: "2.0", method: "notifications/initialized" });
  print({ jsonrpc: "2.0", id: 2, method: "tools/list" });
  await expect.poll(() => lines.length).toBe(2);
  const names = lines[1]?.result?.tools?.map((tool) => tool.name);
  expect(names).toEqual(expect.arrayContaining(["guidelines_for", "spec_search", "spec_impact"]));
  child.stdin.end();
  expect(await ended).toBe(0);
  expect(rest).toBe("");
});

test("a signal also ends the server", async () => {
  const child = startKit(["mcp"], { cwd: project.root });
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  child.stdin.write(`${JSON.stringify(initialize)}\n`);
  await new Promise((resolve) => child.stdout.once("data", resolve));
  child.kill("SIGTERM");
  expect(await ended).toBe(0);
});

test("an invalid configuration is reported on stderr", async () => {
  const broken = await createSampleProject();
  await broken.write("kit.toml", "[server]\nprot = 1\n");
  const { exitCode, stdout, stderr } = await runKit(["mcp"], { cwd: broken.root });
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
  expect(stderr).toContain("prot");
  await broken[Symbol.asyncDispose]();
});
