import type { LoadedConfig } from "../../app/config/load-config.ts";
import { createJsonValidator } from "../../app/runtime/validate-json.ts";
import type { McpServerState } from "../../mcp/create-mcp-client.ts";
import type { CommandContext } from "../command.ts";
import { count } from "../render/places.ts";
import type { Check } from "./check.ts";

/** Starts every configured MCP server once, to see whether it answers and what it offers. */
export async function checkMcpServers(
  { root, signal }: CommandContext,
  { config, environment }: LoadedConfig,
): Promise<readonly Check[]> {
  if (Object.keys(config.mcp?.servers ?? {}).length === 0) return [];
  const { createMcpClient } = await import("../../mcp/create-mcp-client.ts");
  const client = createMcpClient({
    config: config.mcp ?? {},
    root,
    env: environment,
    validateJson: createJsonValidator({ isLenient: true }),
  });
  try {
    return (await client.inspect(signal)).map(toCheck);
  } finally {
    await client.close();
  }
}

function toCheck({ server, tools, isAvailable, problems }: McpServerState): Check {
  const name = `MCP server ${server}`;
  const [first] = problems;
  if (first === undefined) return { name, status: "ok", message: count(tools.length, "tool") };
  if (!isAvailable) {
    const place = `mcp.servers.${server} in the configuration says how it is started.`;
    const hint = first.details === undefined ? place : `It said last: ${first.details}`;
    return { name, status: "error", message: first.message, hint };
  }
  const hint = problems.map((problem) => problem.message).join(" ");
  return { name, status: "warning", message: count(tools.length, "tool"), hint };
}
