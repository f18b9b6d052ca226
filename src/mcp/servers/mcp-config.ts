import {
  dictionary,
  integer,
  list,
  name,
  table,
  text,
  variables,
  withJsonSchema,
} from "../../base/settings.ts";
import type { Infer } from "../../protocol/fields.ts";
import { isServerName, serverName } from "../tools/tool-names.ts";

/** How agents get the tools of MCP servers: each as a separate tool, or through two tools that find and call them. */
const mcpModes = ["direct", "search_execute"] as const;
export type McpMode = (typeof mcpModes)[number];

/** Begins with http: or https:, without a user and a password. */
const webAddress = /^\s*[Hh][Tt][Tt][Pp][Ss]?:[\\/]*[^/\\?#@\s]+(?:[/\\?#]|\s*$)/.source;

/** One MCP server: either a process (`command`) or an address (`url`). */
const serverTable = withJsonSchema(
  table({
    /** A program with MCP over stdin and stdout, started without a shell. */
    command: text,
    args: list(text),
    /**
     * The environment of the process in addition to `PATH`: names of variables to pass on, or names with values, in
     * which `${NAME}` is replaced by a variable.
     */
    env: variables,
    /** The working folder of the process, relative to the project's root; default: the root. */
    cwd: text,
    /** The address of a server with streamable HTTP. */
    url: text,
    /** Headers of every request to `url`; `${NAME}` in a value is replaced by a variable. */
    headers: dictionary(text),
    /** The tools to offer, by the server's own names; `*` matches any characters. Default: all. */
    allow: list(text),
    /** Tools not to offer, even if `allow` names them. */
    deny: list(text),
    /** Seconds for connecting, for listing the tools and for each call; default 30, 30 and 120. */
    timeout_seconds: integer(1, 86_400),
  }),
  {
    // The rules of faultOfServer.
    anyOf: [
      { required: ["command"], properties: { url: false, headers: false } },
      {
        required: ["url"],
        properties: { url: { pattern: webAddress }, command: false, args: false, env: false, cwd: false },
      },
    ],
  },
);
export interface McpServerConfig extends Infer<typeof serverTable> {}

/** The `mcp` table. Errors never contain a value, because it may be a key. */
export const mcpTable = table({
  /** Default `direct`. */
  mode: name(mcpModes),
  /** The most tools that one `mcp_search` returns; default 10. */
  search_limit: integer(1, 100),
  /** Servers by name: letters, digits, `-` and single `_`, at most 32. */
  servers: withJsonSchema(
    dictionary(serverTable).check(({ value, issues }) => {
      for (const [server, settings] of Object.entries(value)) {
        const fault = faultOfServer(server, settings);
        if (fault !== undefined)
          issues.push({ code: "custom", input: settings, path: [server], message: fault });
      }
    }),
    { propertyNames: { pattern: serverName.source } },
  ),
});
export interface McpConfig extends Infer<typeof mcpTable> {}

/** The fault of a server's configuration; continues the sentence "mcp.servers.<name> …". */
export function faultOfServer(name: string, config: McpServerConfig): string | undefined {
  if (!isServerName(name))
    return "has a name that cannot be part of its tools' names: use letters, digits, - and single _, at most 32";
  if ((config.command === undefined) === (config.url === undefined)) return "needs either a command or a url";
  if (config.url === undefined)
    return config.headers === undefined ? undefined : "has headers, which only a url can have";
  const address = URL.parse(config.url);
  if (address === null || !/^https?:$/.test(address.protocol))
    return "has a url that does not begin with http: or https:";
  if (address.username !== "" || address.password !== "") return "has a password in its url: use headers";
  for (const key of ["args", "env", "cwd"] as const) {
    if (config[key] !== undefined) return `has ${key}, which only a command can have`;
  }
  return undefined;
}
