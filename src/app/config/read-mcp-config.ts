import { type McpConfig, type McpMode, type McpServerConfig, mcpModes } from "../../mcp/client/mcp-config.ts";
import { faultOf } from "../../mcp/client/server-settings.ts";
import { dictionary, integer, isTable, list, name, type Reader, table, text } from "./readers.ts";

const variables: Reader<NonNullable<McpServerConfig["env"]>> = (value, path, report) =>
  isTable(value) ? dictionary(text)(value, path, report) : list(text)(value, path, report);

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
  mode: name<McpMode>(mcpModes, (written) => mcpModes.find((known) => known === written)),
  search_limit: integer(1, 100),
  servers: dictionary(server),
});
