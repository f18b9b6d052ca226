import { dictionary, integer, list, name, table, text, variables } from "../../base/settings.ts";
import type { Infer } from "../../protocol/fields.ts";
import { isServerName } from "../tools/tool-names.ts";

/** How agents get the tools of MCP servers: each as a tool of its own, or two tools that find and call them. */
const mcpModes = ["direct", "search_execute"] as const;
export type McpMode = (typeof mcpModes)[number];

/** One MCP server: a process (`command`) or an address (`url`), one of the two. */
const serverTable = table({
  /** A program that speaks MCP over stdin and stdout. It is started without a shell. */
  command: text,
  args: list(text),
  /**
   * The environment of the process besides `PATH`: names of variables to hand on, or names
   * with values, in which `${NAME}` stands for a variable.
   */
  env: variables,
  /** Where the process runs, relative to the project's root; default: the root. */
  cwd: text,
  /** The address of a server that speaks streamable HTTP. */
  url: text,
  /** Sent with every request to `url`; `${NAME}` in a value stands for a variable. */
  headers: dictionary(text),
  /** The tools to offer, by the server's own names; `*` stands for any letters. Default: all. */
  allow: list(text),
  /** Tools not to offer, also where `allow` names them. */
  deny: list(text),
  /** Seconds for connecting, for listing the tools and for each call; default 30, 30 and 120. */
  timeout_seconds: integer(1, 86_400),
});
export interface McpServerConfig extends Infer<typeof serverTable> {}

/** The `mcp` table. Errors never show a value: it may be a key. */
export const mcpTable = table({
  /** Default `direct`. */
  mode: name(mcpModes),
  /** Tools that one `mcp_search` gives at most; default 10. */
  search_limit: integer(1, 100),
  /** By name: letters, digits, `-` and single `_`, at most 32. */
  servers: dictionary(serverTable).check(({ value, issues }) => {
    for (const [server, settings] of Object.entries(value)) {
      const fault = faultOfServer(server, settings);
      if (fault !== undefined)
        issues.push({ code: "custom", input: settings, path: [server], message: fault });
    }
  }),
});
export interface McpConfig extends Infer<typeof mcpTable> {}

/** The fault of a server's configuration, after "mcp.servers.<name> ". */
export function faultOfServer(name: string, config: McpServerConfig): string | undefined {
  if (!isServerName(name))
    return "has a name that its tools cannot carry: use letters, digits, - and single _, at most 32";
  if ((config.command === undefined) === (config.url === undefined))
    return "needs a command or a url, one of the two";
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
