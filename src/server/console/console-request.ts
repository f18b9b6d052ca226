import { KitError } from "../../base/kit-error.ts";

/** Whether the server has its web page, and whether the page may act: `read` is a page that only looks. */
export type ConsoleMode = boolean | "read";

interface Head {
  readonly method: string;
  /** As sent, percent-encoded, without the query. */
  readonly path: string;
  readonly headers: Headers;
  readonly host: string;
}

/**
 * Whether a request is for the page or one of its files, which hold nothing secret and need no key. `/` is the page
 * for browsers only: clients get JSON there.
 */
export function isPageRequest({ method, path, headers }: Omit<Head, "host">): boolean {
  if (method !== "GET" && method !== "HEAD") return false;
  if (path === "/") return headers.get("accept")?.includes("text/html") === true;
  return isPagePath(path);
}

/** Whether a path is a screen of the page or a file of it; `/` is a route as well. */
export function isPagePath(path: string): boolean {
  return path === "/console" || path.startsWith("/console/");
}

/** POST routes that change nothing. Handlers of conversions and syncs know whether they are to write. */
const readingPosts: ReadonlySet<string> = new Set([
  "/api/specs/impact",
  "/api/specs/validate",
  "/api/guidelines/export",
  "/api/guidelines/convert",
  "/api/guidelines/sync",
]);

/**
 * Refuses what a page that may only look would change. A page cannot hide where it comes from: browsers set `Origin` and
 * `Sec-Fetch-Site` themselves. Throws `forbidden`.
 */
export function checkLooksOnly({ method, path, headers, host }: Head): void {
  const isHandshake = headers.get("upgrade")?.toLowerCase() === "websocket";
  const reads = method === "GET" || method === "HEAD" || method === "OPTIONS" || readingPosts.has(path);
  if ((!reads || isHandshake) && isOfOwnPage(headers, host)) throw readOnlyError();
}

/** The refusal of a write by a page that may only look. */
export function readOnlyError(): KitError {
  return new KitError({
    code: "forbidden",
    message: 'This page may only look: server.console is "read".',
    hint: "Use the command line or a client, or set server.console = true.",
  });
}

/** Whether a page of this very server sends the request. */
export function isOfOwnPage(headers: Headers, host: string): boolean {
  if (headers.get("sec-fetch-site") === "same-origin") return true;
  const origin = headers.get("origin")?.toLowerCase();
  return origin === `http://${host.toLowerCase()}` || origin === `https://${host.toLowerCase()}`;
}
