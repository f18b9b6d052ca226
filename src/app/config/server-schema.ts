import * as z from "zod/mini";
import {
  expecting,
  flag,
  integer,
  list,
  live,
  name,
  table,
  tableWith,
  text,
  textLike,
} from "../../base/settings.ts";
import type { AuthorizeHook, AuthResult } from "../../protocol/access.ts";
import type { Infer } from "../../protocol/fields.ts";

/** The facts about a request that `server.auth` receives. */
export interface AuthRequest {
  readonly method: string;
  /** As sent, percent-encoded, without the query. */
  readonly path: string;
  readonly headers: Headers;
  /** The agent's name, if the request is to an agent. */
  readonly agent?: string;
  /** The id of the agent's instance, if the request is to an agent. */
  readonly instance?: string;
}

/** The rate limit of a principal; requests over the limit get 429. */
const rateLimitTable = tableWith(
  {
    /** Requests, and prompts and approvals of a WebSocket, in `per_seconds`. */
    requests: integer(1, 1_000_000_000),
  },
  {
    /** Default 60. */
    per_seconds: integer(1, 86_400),
    /** Maximum of requests in a burst; default: `requests`. */
    burst: integer(1, 1_000_000_000),
  },
);
export interface RateLimit extends Infer<typeof rateLimitTable> {}

/** An address whose requests no machine on the way can read or change: https, or this machine. */
const safeAddress = textLike(
  "an address that begins with https:// (http:// only on this machine), without a user and a query",
  /^(?:https:\/\/[^\s?#@]+|http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?:[:/][^\s?#@]*)?)$/,
  (text) => URL.canParse(text),
);

/** The issuer whose tokens `/mcp` accepts. kit verifies tokens, and issues none. */
const oauthTable = tableWith(
  {
    /** The `iss` of the tokens, as the issuer writes it. */
    issuer: safeAddress,
    /** The address of the issuer's public keys (JWKS). */
    jwks: safeAddress,
    /** The address of `/mcp` as clients type it: `https://kit.example/mcp`. */
    resource: safeAddress,
  },
  {
    /** The `aud` of the tokens; default: `resource`. */
    audience: text,
    /** Scopes that a token must have; default: none. */
    scopes: list(textLike("a scope without spaces", /^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/)),
  },
);
export interface OAuthConfig extends Infer<typeof oauthTable> {}

/** How `/mcp` answers calls of agents and workflows. */
const mcpServerTable = table({
  /**
   * Where people decide about waiting calls: in a form of the client, if it can display one (`elicit`, the default), or only in kit's
   * inbox (`inbox`), for keys of machines: a program can answer a form by itself.
   */
  approvals: name(["elicit", "inbox"]),
  /** Seconds that a call waits for the end of its work; default 50. Afterwards the answer says how to wait on. */
  wait_seconds: integer(1, 86_400),
});

/** How agents of others reach this project's, over A2A at `/a2a`. */
const a2aTable = table({
  /** The agent whose card is at `/.well-known/agent-card.json`; default: the default agent, or the only one. */
  agent: text,
  /** The address of the server as clients type it, for the cards: `https://kit.example`; default: `server.public_url`, else that of the request. */
  url: safeAddress,
  /** The readers of cards: senders with a key (`keys`, the default), or everybody (`public`). */
  cards: name(["keys", "public"]),
  /**
   * The deciders about waiting calls: people in kit's inbox (`inbox`, the default), or also the calling agent (`sender`), if
   * `authorize` allows it `agent.approve`: a calling agent is a program, and can answer by itself.
   */
  approvals: name(["inbox", "sender"]),
});

/** The settings of `kit start`. */
export const serverTable = table({
  /** The address to listen on; default 127.0.0.1. */
  host: text,
  /** 0 to 65535; default 2024. 0 chooses any free port. */
  port: integer(0, 65_535),
  /** The address of the server as browsers type it, `https://kit.example`; default: its port of this machine. */
  public_url: safeAddress,
  /**
   * The agents that the server serves: those whose file declares `triggers = { webhook: true }` (`declared`, the
   * default; requests to others get 404 `agent_not_webhook`), or `all`.
   */
  expose: name(["declared", "all"]),
  /** Requests must carry one of these keys as a bearer token. Prefer the variable `KIT_API_KEYS`. */
  api_keys: list(text),
  /** The issuer whose tokens `/mcp` accepts beside the keys; its tokens open no other route. */
  oauth: oauthTable,
  /** Agents and workflows as tools at `/mcp`. */
  mcp: mcpServerTable,
  /** Agents for the agents of others. */
  a2a: a2aTable,
  /** Returns whether a request may pass, or its principal; called after the check of the keys. Only in `kit.config.ts`. */
  auth: live<(request: AuthRequest) => AuthResult | Promise<AuthResult>>(
    "a function (only in kit.config.ts)",
    isFunction,
  ),
  /** Returns whether a principal may perform the action of a request. Only in `kit.config.ts`. */
  authorize: live<AuthorizeHook>("a function (only in kit.config.ts)", isFunction),
  /** The rate limit of each principal; default: none. */
  rate_limit: rateLimitTable,
  /** `Host` names that the server accepts in addition to the machine's own. */
  allowed_hosts: list(text),
  /** Origins of web pages that may call this server, such as `https://app.example`. */
  allowed_origins: list(text),
  /** Refuses every write with 403; default false. */
  read_only: flag,
  /**
   * The console at `/`: true (the default), `read` (the server refuses every change from the console), or false (no
   * console).
   */
  console: z.union([flag, name(["read"])], { error: expecting('true, false or "read"') }),
  /** The largest request body in bytes; default 1,048,576. */
  max_body_bytes: integer(1, 1_073_741_824),
  /**
   * Seconds after which the server ends event streams that their readers can resume, for platforms that cut long
   * requests; default: no limit.
   */
  max_stream_seconds: integer(1, 604_800),
  /** Seconds for which the server still answers after SIGTERM, with 503 for `GET /health`; default 0, or 1 with an engine that machines share. */
  drain_seconds: integer(0, 3_600),
});
export interface ServerConfig extends Infer<typeof serverTable> {}
export type Exposure = NonNullable<ServerConfig["expose"]>;

function isFunction<Hook extends (...args: never[]) => unknown>(value: unknown): value is Hook {
  return typeof value === "function";
}
