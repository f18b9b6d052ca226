import * as z from "zod/mini";
import { expecting, flag, integer, list, live, name, table, tableWith, text } from "../../base/settings.ts";
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
  /** @deprecated Use `instance`. */
  readonly instance_id?: string;
}

/** How many requests a principal may make; over the limit they are answered with 429. */
const rateLimitTable = tableWith(
  {
    /** Requests, and prompts and approvals of a WebSocket, in `per_seconds`. */
    requests: integer(1, 1_000_000_000),
  },
  {
    /** Default 60. */
    per_seconds: integer(1, 86_400),
    /** How many may come at once after a quiet time; default: `requests`. */
    burst: integer(1, 1_000_000_000),
  },
);
export interface RateLimit extends Infer<typeof rateLimitTable> {}

/** How `kit start` serves. */
export const serverTable = table({
  /** The address to listen on; default 127.0.0.1. */
  host: text,
  /** 0 to 65535; default 2024. 0 takes any free port. */
  port: integer(0, 65_535),
  /**
   * Which agents requests reach: those whose file declares `triggers = { webhook: true }` (`declared`, the
   * default; others answer 404 `agent_not_webhook`), or `all`.
   */
  expose: name(["declared", "all"]),
  /** Requests must carry one of these as a bearer token. Better given as `KIT_API_KEYS`. */
  api_keys: list(text),
  /** Says whether a request may pass, or its principal; asked after the keys. Only in `kit.config.ts`. */
  auth: live<(request: AuthRequest) => AuthResult | Promise<AuthResult>>(
    "a function (only in kit.config.ts)",
    isFunction,
  ),
  /** Says whether a principal may do what a request asks for. Only in `kit.config.ts`. */
  authorize: live<AuthorizeHook>("a function (only in kit.config.ts)", isFunction),
  /** How many requests each principal may make; without it, as many as the server can answer. */
  rate_limit: rateLimitTable,
  /** `Host` names to answer to besides the machine's own. */
  allowed_hosts: list(text),
  /** Origins of web pages that may call this server, such as `https://app.example`. */
  allowed_origins: list(text),
  /** Refuses every write with 403; default false. */
  read_only: flag,
  /**
   * The web page at `/`: true (the default), `read` (it looks, and the server refuses what the page would change), or
   * false (no page).
   */
  console: z.union([flag, name(["read"])], { error: expecting('true, false or "read"') }),
  /** The largest request body in bytes; default 1,048,576. */
  max_body_bytes: integer(1, 1_073_741_824),
  /**
   * Streams of events that their readers take up again end after so many seconds, where a platform cuts long requests; default:
   * they go on.
   */
  max_stream_seconds: integer(1, 604_800),
  /** After SIGTERM the server answers on for so long, with 503 for `GET /health`; default 0, with an engine that machines share 1. */
  drain_seconds: integer(0, 3_600),
});
export interface ServerConfig extends Infer<typeof serverTable> {}
export type Exposure = NonNullable<ServerConfig["expose"]>;

function isFunction<Hook extends (...args: never[]) => unknown>(value: unknown): value is Hook {
  return typeof value === "function";
}
