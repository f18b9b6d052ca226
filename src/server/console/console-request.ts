import { KitError } from "../../base/kit-error.ts";

/** Whether the server has its web page; `read` is a read-only page. */
export type ConsoleMode = boolean | "read";

interface Head {
  readonly method: string;
  /** As sent, percent-encoded, without the query. */
  readonly path: string;
  readonly headers: Headers;
  readonly host: string;
}

/**
 * Whether a request is for the page or one of its files, which hold no secrets and need no key. `/` is the page only
 * for browsers: clients get JSON there.
 */
export function isPageRequest({ method, path, headers }: Omit<Head, "host">): boolean {
  if (method !== "GET" && method !== "HEAD") return false;
  if (path === "/") return headers.get("accept")?.includes("text/html") === true;
  return isPagePath(path);
}

/** Whether a path is a screen or a file of the page, except `/`, which is also a route. */
export function isPagePath(path: string): boolean {
  return path === "/console" || path.startsWith("/console/");
}

/** POST routes that a read-only page can call. The handlers of conversions and syncs check whether a request writes. */
const readingPosts: ReadonlySet<string> = new Set([
  "/api/specs/impact",
  "/api/specs/validate",
  "/api/guidelines/export",
  "/api/guidelines/convert",
  "/api/guidelines/sync",
]);

/**
 * Throws `forbidden` for a write of a read-only page. A page cannot hide its origin: browsers set `Origin` and
 * `Sec-Fetch-Site` themselves.
 */
export function checkLooksOnly({ method, path, headers, host }: Head): void {
  const isHandshake = headers.get("upgrade")?.toLowerCase() === "websocket";
  const reads = method === "GET" || method === "HEAD" || method === "OPTIONS" || readingPosts.has(path);
  if ((!reads || isHandshake) && isOfOwnPage(headers, host)) throw readOnlyError();
}

/** Creates the error for a write of a read-only page. */
export function readOnlyError(): KitError {
  return new KitError({
    code: "forbidden",
    message: 'This page is read-only: server.console is "read".',
    hint: "Use the command line or a client, or set server.console = true.",
  });
}

/** Whether a page of this server sends the request. */
export function isOfOwnPage(headers: Headers, host: string): boolean {
  if (headers.get("sec-fetch-site") === "same-origin") return true;
  const origin = headers.get("origin")?.toLowerCase();
  return origin === `http://${host.toLowerCase()}` || origin === `https://${host.toLowerCase()}`;
}
