import type { McpServer } from "@agentclientprotocol/sdk";
import { createJsonValidator } from "../../app/runtime/validate-json.ts";
import { KitError } from "../../base/kit-error.ts";
import { createMcpClient, type McpClient } from "../../mcp/create-mcp-client.ts";
import type { McpServerConfig } from "../../mcp/servers/mcp-config.ts";

/** Variables that programs of a person's machine need to find their files. */
const personal = ["HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TMPDIR", "TEMP", "LANG"];

/**
 * Connects the MCP servers that a person has set in the editor, for one session; undefined for none. Throws `invalid_request` for a
 * server that kit cannot use.
 */
export function openClientServers(servers: readonly McpServer[], root: string): McpClient | undefined {
  if (servers.length === 0) return undefined;
  const byName = new Map<string, McpServerConfig>();
  for (const server of servers) {
    const name = nameFor(server.name, (taken) => byName.has(taken));
    byName.set(name, toServerConfig(server));
  }
  return createMcpClient({
    config: { servers: Object.fromEntries(byName) },
    root,
    env: literal(process.env),
    validateJson: createJsonValidator({ isLenient: true }),
  });
}

/** `$` of a value stands for itself: the editor has replaced its own variables. */
function literal(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...env, [dollar]: "$" };
}
const dollar = "KIT_ACP_DOLLAR";
const quoted = (value: string): string => value.replaceAll("${", `\${${dollar}}{`);

function toServerConfig(server: McpServer): McpServerConfig {
  if (!("type" in server)) {
    const own = Object.fromEntries(server.env.map(({ name, value }) => [name, quoted(value)]));
    const passed = personal.filter((name) => process.env[name] !== undefined && !(name in own));
    const env = { ...Object.fromEntries(passed.map((name) => [name, `\${${name}}`])), ...own };
    return { command: server.command, args: server.args, env };
  }
  if (server.type === "sse")
    throw new KitError({
      code: "invalid_request",
      message: `The MCP server ${JSON.stringify(server.name)} uses SSE, which MCP has replaced.`,
      hint: "Use its address for streamable HTTP.",
    });
  const headers = Object.fromEntries(server.headers.map(({ name, value }) => [name, quoted(value)]));
  return { url: server.url, headers };
}

/** A name that can be part of a tool's name, which no other server has. */
function nameFor(name: string, isTaken: (name: string) => boolean): string {
  const base =
    name
      .replaceAll(/[^A-Za-z0-9-]+/g, "-")
      .replaceAll(/^-+|-+$/g, "")
      .slice(0, 28) || "server";
  let own = base;
  for (let count = 2; isTaken(own); count += 1) own = `${base}-${count}`;
  return own;
}
