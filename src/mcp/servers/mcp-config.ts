/** How agents get the tools of MCP servers: each as a tool of its own, or two tools that find and call them. */
export const mcpModes = ["direct", "search_execute"] as const;
export type McpMode = (typeof mcpModes)[number];

/** One MCP server: a process (`command`) or an address (`url`), one of the two. */
export interface McpServerConfig {
  /** A program that speaks MCP over stdin and stdout. It is started without a shell. */
  readonly command?: string | undefined;
  readonly args?: readonly string[] | undefined;
  /**
   * The environment of the process besides `PATH`: names of variables to hand on, or names
   * with values, in which `${NAME}` stands for a variable.
   */
  readonly env?: readonly string[] | Readonly<Record<string, string>> | undefined;
  /** The folder that the process runs in, relative to the project's root; default: the root. */
  readonly cwd?: string | undefined;
  /** The address of a server that speaks streamable HTTP. */
  readonly url?: string | undefined;
  /** Sent with every request to `url`; `${NAME}` in a value stands for a variable. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The tools to offer, by the server's own names; `*` stands for any letters. Default: all. */
  readonly allow?: readonly string[] | undefined;
  /** Tools not to offer, also where `allow` names them. */
  readonly deny?: readonly string[] | undefined;
  /** Seconds for connecting, for listing the tools and for each call; default 30, 30 and 120. */
  readonly timeout_seconds?: number | undefined;
}

/** The `mcp` table of the configuration. */
export interface McpConfig {
  /** Default `direct`. */
  readonly mode?: McpMode | undefined;
  /** Tools that one `mcp_search` gives at most; default 10. */
  readonly search_limit?: number | undefined;
  /** By name: letters, digits, `-` and single `_`, at most 32. */
  readonly servers?: Readonly<Record<string, McpServerConfig>> | undefined;
}
