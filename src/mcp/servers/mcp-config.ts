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

/** How kit is known at the authorization server of an MCP server. */
const oauthTable = table({
  /** `authorization_code`, the default, lets a person log in; with `client_credentials`, kit logs in with its secret. */
  grant: name(["authorization_code", "client_credentials"]),
  /** The only authorization server to use. Default: the one that the server names. */
  issuer: text,
  /** The id that kit is registered with, or the https address of its Client ID Metadata Document. Default: kit registers itself. */
  client_id: text,
  /** The secret of `client_id`, for `issuer` only; `${NAME}` is replaced by a variable. */
  client_secret: text,
  /** Scopes to ask for, besides those that the server asks for. */
  scope: text,
  /** The port of 127.0.0.1 that `client_id` is registered with; default: any. */
  callback_port: integer(1, 65_535),
});

/** The `oauth` table of a server. */
export interface OAuthSettings extends Infer<typeof oauthTable> {}

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
    /** How to log in at `url`; without it, `kit mcp login` does what the server asks for. */
    oauth: oauthTable,
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
      { required: ["command"], properties: { url: false, headers: false, oauth: false } },
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
  if (config.url === undefined) {
    const extra = (["headers", "oauth"] as const).find((key) => config[key] !== undefined);
    return extra === undefined ? undefined : `has ${extra}, which only a url can have`;
  }
  const address = URL.parse(config.url);
  if (address === null || !/^https?:$/.test(address.protocol))
    return "has a url that does not begin with http: or https:";
  if (address.username !== "" || address.password !== "") return "has a password in its url: use headers";
  for (const key of ["args", "env", "cwd"] as const) {
    if (config[key] !== undefined) return `has ${key}, which only a command can have`;
  }
  return config.oauth === undefined ? undefined : faultOfOAuth(config.oauth, config.headers ?? {});
}

function faultOfOAuth(
  { grant, issuer, client_id, client_secret }: OAuthSettings,
  headers: Readonly<Record<string, string>>,
): string | undefined {
  if (hasAuthorization(headers)) return "has both oauth and the header Authorization: use one of them";
  if (client_secret !== undefined && (client_id === undefined || issuer === undefined))
    return "has oauth.client_secret without oauth.client_id and oauth.issuer, which say whose it is and who may get it";
  if (grant === "client_credentials" && client_secret === undefined)
    return "has oauth.grant client_credentials without oauth.client_secret";
  const address = issuer === undefined ? undefined : URL.parse(issuer);
  if (address === null || (address !== undefined && !/^https?:$/.test(address.protocol)))
    return "has an oauth.issuer that does not begin with https:";
  return undefined;
}

/** Whether the headers authorize the requests, so that kit does not log in. */
export function hasAuthorization(headers: Readonly<Record<string, string>>): boolean {
  return Object.keys(headers).some((header) => header.toLowerCase() === "authorization");
}
