import {
  type McpConfig,
  type McpMode,
  type McpServerConfig,
  mcpModes,
} from "../../mcp/servers/mcp-config.ts";
import { faultOf } from "../../mcp/servers/server-settings.ts";
import { dictionary, integer, list, name, type Reader, table, text, variables } from "./readers.ts";

const readServer = table<McpServerConfig>({
  command: text,
  args: list(text),
  env: variables,
  cwd: text,
  url: text,
  headers: dictionary(text),
  allow: list(text),
  deny: list(text),
  timeout_seconds: integer(1, 86_400),
});

const above = "mcp.servers.";

const server: Reader<McpServerConfig> = (value, path, report) => {
  const before = report.issues.length;
  const read = readServer(value, path, report);
  if (read === undefined || report.issues.length > before) return undefined;
  const fault = faultOf(path.slice(above.length), read);
  if (fault !== undefined) report.issues.push({ path, message: fault });
  return read;
};

/** Reads the `mcp` table. Values are never repeated in what it reports: they may be keys. */
export const readMcpConfig: Reader<McpConfig> = table<McpConfig>({
  mode: name<McpMode>(mcpModes),
  search_limit: integer(1, 100),
  servers: dictionary(server),
});
