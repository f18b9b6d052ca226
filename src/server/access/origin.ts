import { KitError } from "../../base/kit-error.ts";

/** The headers of a request that say which page a browser sent it from. */
export interface OriginHeaders {
  readonly host: string | undefined;
  readonly origin: string | undefined;
  /** `Sec-Fetch-Site` and `Sec-Fetch-Mode`, which browsers set and pages cannot. */
  readonly fetchSite: string | undefined;
  readonly fetchMode: string | undefined;
}

/**
 * Refuses requests that a foreign web page makes (cross-site request forgery). Programs send no
 * `Origin` and pass; so do links to kit, which browsers mark as navigation. Throws `forbidden`.
 */
export function checkOrigin(headers: OriginHeaders, allowedOrigins: ReadonlySet<string>): void {
  const { origin } = headers;
  if (origin !== undefined) {
    if (allowedOrigins.has(origin.toLowerCase()) || isSameOrigin(origin, headers.host)) return;
  } else if (headers.fetchSite !== "cross-site" || headers.fetchMode === "navigate") {
    return;
  }
  throw new KitError({
    code: "forbidden",
    message: "Requests from other web pages are not allowed.",
    hint: "Add the page's origin to server.allowed_origins in the configuration.",
  });
}

// A proxy in front may speak TLS, so either scheme stands for the host that the request names.
function isSameOrigin(origin: string, host: string | undefined): boolean {
  if (host === undefined) return false;
  const named = origin.toLowerCase();
  return named === `http://${host.toLowerCase()}` || named === `https://${host.toLowerCase()}`;
}
