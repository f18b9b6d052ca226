import type { McpServer } from "@agentclientprotocol/sdk";
import { createJsonValidator } from "../../app/runtime/validate-json.ts";
import { KitError } from "../../base/kit-error.ts";
import { createMcpClient, type McpClient } from "../../mcp/create-mcp-client.ts";
import type { McpServerConfig } from "../../mcp/servers/mcp-config.ts";

/**
 * Connects the MCP servers that a person has set in the editor, for one session; undefined for none. Throws `invalid_request` for a
 * server that kit cannot use.
 */
export function openClientServers(servers: readonly McpServer[], root: string): McpClient | undefined {
  if (servers.length === 0) return undefined;
  const configs: Record<string, McpServerConfig> = {};
  for (const server of servers) {
    // The name becomes a part of tools' names.
    const base =
      server.name
        .replaceAll(/[^A-Za-z0-9]+/g, "-")
        .replaceAll(/^-|-$/g, "")
        .slice(0, 28) || "server";
    let name = base;
    for (let count = 2; name in configs; count += 1) name = `${base}-${count}`;
    configs[name] = toConfig(server);
  }
  const env = { ...process.env, [dollar]: "$" };
  const validateJson = createJsonValidator({ isLenient: true });
  return createMcpClient({ config: { servers: configs }, root, env, validateJson });
}

/** A variable for `$`, which stands for itself here: the editor has replaced its own variables. */
const dollar = "KIT_ACP_DOLLAR";

function toValues(
  pairs: readonly { readonly name: string; readonly value: string }[],
): Record<string, string> {
  return Object.fromEntries(pairs.map(({ name, value }) => [name, value.replaceAll("${", `\${${dollar}}{`)]));
}

function toConfig(server: McpServer): McpServerConfig {
  if (!("type" in server)) {
    const { command, args } = server;
    // Programs find the files of the person with it.
    const home = process.env.HOME === undefined ? [] : [{ name: "HOME", value: process.env.HOME }];
    return { command, args, env: toValues([...home, ...server.env]) };
  }
  if (server.type === "http") return { url: server.url, headers: toValues(server.headers) };
  throw new KitError({
    code: "invalid_request",
    message: `The MCP server ${JSON.stringify(server.name)} uses SSE, which MCP has replaced.`,
    hint: "Use its address for streamable HTTP.",
  });
}
