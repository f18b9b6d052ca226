/**
 * Measures what hostile MCP servers and clients cost: processor time, memory and the longest wait of the event loop while
 * a server floods, how often a stream that its server closes is opened again, how long lines to `kit mcp` take, and how much longer
 * kit lists its tools over HTTP than it describes itself.
 * Prints a table and fails when a target is missed.
 *
 * `--seconds 20` floods for longer; `--only lines,"blank lines"` measures what has one of these words in its name.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { repositoryRoot } from "../../scripts/files.ts";
import type { ToolDefinition } from "../../src/agents/define/tool.ts";
import { createToolContext } from "../../src/agents/define/tool-context.ts";
import { createMcpClient } from "../../src/mcp/create-mcp-client.ts";
import type { McpServerConfig } from "../../src/mcp/servers/mcp-config.ts";
import { listCostMs } from "./list-cost.ts";

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "10" }, only: { type: "string", default: "" } },
});
const seconds = Number(values.seconds);
const only = values.only.split(",").filter((word) => word !== "");
const isWanted = (name: string): boolean => only.length === 0 || only.some((word) => name.includes(word));

/** Limits: the share of one processor, the wait of the event loop, and the additional memory. */
const targets = { share: 0.15, gapMs: 100, memoryMb: 150, streamsPerSecond: 1, listMs: 0.5 };

const hostile = join(repositoryRoot, "src/mcp/testing/hostile/serve-process.ts");
const processes: Readonly<Record<string, string>> = {
  "no flood": "harmless",
  "blank lines": "flood-blank",
  "one-character lines": "flood-characters",
  "one endless line": "flood-endless-line",
  "valid small pings": "flood-pings",
  stderr: "flood-errors",
};
const addresses = [
  "no flood over HTTP",
  "stream of events",
  "stream of blank lines",
  "stream of carriage returns",
  "stream of comments",
  "stream of empty events",
  "stream of fields",
  "one line without end",
  "one event without end",
  "stream byte by byte",
  "stream of a gzip bomb",
  "JSON as a gzip bomb",
  "headers without end",
  "1xx without end",
  "100 Continue without end",
  "closed at once, retry: 0",
  "calls that time out, retry: 0",
];
const megabytes = [1, 5, 9, 11, 40, 200];

interface Cost {
  readonly processorMs: number;
  /** The longest time between two turns of the event loop, and the processor time of this thread within it. */
  readonly gapMs: number;
  readonly gapProcessorMs: number;
  readonly memoryMb: number;
  readonly problem: string;
}

/** The cost of a server to a client whose operations ask for tools four times a second. */
async function costOf(server: McpServerConfig, isCalled: boolean): Promise<Cost> {
  const client = createMcpClient({
    config: { servers: { s: server } },
    root: process.cwd(),
    env: process.env,
    validateJson: () => [],
  });
  let [gapMs, gapProcessorMs, memory] = [0, 0, 0];
  let turn = { at: performance.now(), processor: process.threadCpuUsage() };
  const memoryBefore = process.memoryUsage.rss();
  const processorBefore = process.cpuUsage();
  const watch = setInterval(() => {
    const now = { at: performance.now(), processor: process.threadCpuUsage() };
    if (now.at - turn.at > gapMs) {
      gapMs = now.at - turn.at;
      const { user, system } = now.processor;
      gapProcessorMs = (user - turn.processor.user + system - turn.processor.system) / 1000;
    }
    memory = Math.max(memory, process.memoryUsage.rss() - memoryBefore);
    turn = now;
  }, 5);
  const until = performance.now() + seconds * 1000;
  const problems = new Set<string>();
  while (performance.now() < until) {
    void client.tools().then(async (tools) => {
      const [tool] = tools as readonly ToolDefinition[];
      const context = createToolContext({ signal: AbortSignal.timeout(60_000) });
      if (isCalled) await tool?.execute({}, context);
    });
    await sleep(250);
    for (const { message } of client.problems()) problems.add(message);
  }
  clearInterval(watch);
  const { user, system } = process.cpuUsage(processorBefore);
  await client.close();
  const problem = [...problems][0] ?? "";
  return {
    processorMs: (user + system) / 1000,
    gapMs,
    gapProcessorMs,
    memoryMb: memory / 1_048_576,
    problem,
  };
}

const cell = (value: number, width: number): string => value.toFixed(0).padStart(width);

function report(name: string, cost: Cost, streams?: number): void {
  const missed = [
    ...(cost.processorMs > targets.share * seconds * 1000 ? ["processor time"] : []),
    ...(cost.gapProcessorMs > targets.gapMs ? ["wait"] : []),
    ...(cost.memoryMb > targets.memoryMb ? ["memory"] : []),
    ...((streams ?? 0) > targets.streamsPerSecond * seconds ? ["streams"] : []),
  ];
  if (missed.length > 0) process.exitCode = 1;
  console.log(
    [
      name.padEnd(30),
      cell(cost.processorMs, 7),
      cell(cost.gapMs, 7),
      cell(cost.gapProcessorMs, 7),
      cell(cost.memoryMb, 7),
      streams === undefined ? "      –" : cell(streams, 7),
      missed.length === 0 ? "  met" : `  MISSED: ${missed.join(", ")}`,
      `  ${cost.problem.slice(0, 90)}`,
    ].join(""),
  );
}

async function floodOverHttp(name: string): Promise<void> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "serve-flood.ts"), name], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let streams = 0;
  const port = await new Promise<string>((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (line.startsWith("port ")) resolve(line.slice(5));
      else streams = Number(line);
    });
  });
  const isCalled = name.startsWith("calls");
  const server = { url: `http://127.0.0.1:${port}/mcp`, ...(isCalled ? { timeout_seconds: 1 } : {}) };
  report(name, await costOf(server, isCalled), streams);
  await end(child);
}

async function end(child: ChildProcess): Promise<void> {
  child.kill("SIGKILL");
  await once(child, "close");
}

/** Milliseconds from the first byte of a long line to the answer to the short request that follows it. */
async function longLineMs(size: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "kit-bench-mcp-"));
  const child = spawn(process.execPath, [join(repositoryRoot, "bin/kit.mjs"), "mcp"], {
    cwd: folder,
    stdio: ["pipe", "pipe", "ignore"],
  });
  const waiting = new Map<number, () => void>();
  createInterface({ input: child.stdout }).on("line", (line) => waiting.get(JSON.parse(line).id)?.());
  child.stdin.on("error", () => undefined);
  const ask = (id: number, method: string, params: object): Promise<void> =>
    new Promise((resolve) => {
      waiting.set(id, resolve);
      child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    });
  const clientInfo = { name: "bench", version: "1" };
  await ask(0, "initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
  child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  const started = performance.now();
  void ask(1, "tools/call", { name: "spec_search", arguments: { query: "x".repeat(size * 1_048_576) } });
  await ask(2, "ping", {});
  const ms = performance.now() - started;
  await end(child);
  rmSync(folder, { recursive: true, force: true });
  return ms;
}

console.log(`${seconds} s each, Node ${process.versions.node}; milliseconds and MB`);
console.log(`${"".padEnd(30)} kit's    wait  of it   more  HTTP`);
console.log(`${"".padEnd(30)}  time          work  memory streams`);
// The first server loads modules, which are no cost of the flood.
await costOf({ command: "true" }, false);
for (const [name, scenario] of Object.entries(processes))
  if (isWanted(name))
    report(name, await costOf({ command: process.execPath, args: [hostile, scenario] }, false));
for (const name of addresses) if (isWanted(name)) await floodOverHttp(name);
if (isWanted("long lines")) {
  for (const size of megabytes) {
    const ms = await longLineMs(size);
    const isMet = ms < 500 + 25 * size;
    if (!isMet) process.exitCode = 1;
    console.log(
      `${`kit mcp, a line of ${size} MB`.padEnd(30)}${cell(ms, 7)} ms${isMet ? "  met" : "  MISSED (500 + 25 for each MB)"}`,
    );
  }
}
if (isWanted("tools/list")) {
  const ms = await listCostMs();
  const isMet = ms <= targets.listMs;
  if (!isMet) process.exitCode = 1;
  console.log(
    `${"tools/list after discover".padEnd(30)}${ms.toFixed(2).padStart(7)} ms${isMet ? "  met" : `  MISSED (${targets.listMs})`}`,
  );
}
