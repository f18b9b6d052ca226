import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { AnyTool, ToolDefinition, ToolOutput } from "../agents/define/tool.ts";
import { createToolContext } from "../agents/define/tool-context.ts";
import { createJsonValidator } from "../app/runtime/validate-json.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import {
  createMcpClient,
  type McpClient,
  type McpClientOptions,
  type McpProblem,
} from "./create-mcp-client.ts";
import type { McpConfig, McpServerConfig } from "./servers/mcp-config.ts";

const folder = join(import.meta.dirname, "testing");

/** A real server as a process; `args` are a log of its calls and `late=<ms>`. */
export function toolServer(...args: readonly string[]): McpServerConfig {
  return { command: process.execPath, args: [join(folder, "serve-process.ts"), ...args] };
}

/** The configuration of a server that misbehaves in one way. */
export function hostileServer(scenario: string): McpServerConfig {
  return { command: process.execPath, args: [join(folder, "hostile/serve-process.ts"), scenario] };
}

/** A clock that runs ten times as fast, to shorten pauses in tests. */
const fastClock: Clock = {
  now: () => 10 * Date.now(),
  sleep: (ms, signal) => systemClock.sleep(ms / 10, signal),
};

/** A clock whose sleeps end at once. */
export function createSkippingClock(): Clock {
  let now = Date.parse("2026-11-21T10:00:00Z");
  return {
    now: () => now,
    async sleep(ms) {
      now += ms;
    },
  };
}

/** Opens a client that is closed at the end of the test. */
export function openClient(config: McpConfig, over: Partial<McpClientOptions> = {}): McpClient {
  const client = createMcpClient({
    config,
    root: process.cwd(),
    env: process.env,
    validateJson: createJsonValidator({ isLenient: true }),
    clock: fastClock,
    ...over,
  });
  onTestFinished(() => client.close());
  return client;
}

/** A client of one server, named `s`. */
export function openServer(server: McpServerConfig, over: Partial<McpClientOptions> = {}): McpClient {
  return openClient({ servers: { s: server } }, over);
}

export async function namesOf(client: McpClient): Promise<readonly string[]> {
  return (await client.tools()).map((tool) => tool.name);
}

/** The tools, and the reported problems. */
export async function toolsAndProblems(
  client: McpClient,
): Promise<{ readonly tools: readonly AnyTool[]; readonly problems: readonly McpProblem[] }> {
  const problems: McpProblem[] = [];
  const tools = await client.tools({ onProblem: (problem) => problems.push(problem) });
  return { tools, problems };
}

/** Calls a tool by the end of its name, without validation, as the turn loop does after it. */
export async function callTool(
  client: McpClient,
  name: string,
  request: { readonly args?: unknown; readonly signal?: AbortSignal } = {},
): Promise<Exclude<ToolOutput, string>> {
  const tools = (await client.tools()) as readonly ToolDefinition[];
  const tool = tools.find((one) => one.name === name || one.name === `mcp__s__${name}`);
  if (tool === undefined) throw new Error(`There is no tool named ${name}.`);
  const context = createToolContext(request.signal === undefined ? {} : { signal: request.signal });
  const output = await tool.execute(request.args ?? {}, context);
  // Tools of servers return texts and parts.
  return typeof output === "string" ? { content: output } : (output as Exclude<ToolOutput, string>);
}

export function textOf(output: Exclude<ToolOutput, string>): string {
  if (typeof output.content === "string") return output.content;
  return output.content.map((part) => (part.type === "text" ? part.text : `[${part.media_type}]`)).join("\n");
}

/** Whether a process exists. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
