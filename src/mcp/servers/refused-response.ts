import { cleanLine } from "../clean-text.ts";
import { isEventStream } from "./bound-response.ts";
import { ServerFailure } from "./server-failure.ts";

/** The parts of an HTTP request that decide how its response is read. */
export interface HttpRequest {
  readonly method: string;
  readonly headers: Headers;
  /** Whether it is a JSON-RPC request, which needs a result. */
  readonly expectsResult: boolean;
}

const notMcp = "What answers at its address does not speak MCP";

/**
 * Why a response is refused, by its status and headers; `undefined` for responses that the SDK handles: results, the
 * answers of old servers to new requests (400, 404, 405), and redirects.
 */
export function refusedResponse(request: HttpRequest, response: Response): ServerFailure | undefined {
  const { status } = response;
  const refused = (message: string, isLost = false): ServerFailure =>
    new ServerFailure(message, { outcome: "refused", isLost });
  if (status === 401) {
    const advice = request.headers.has("authorization")
      ? "the value in `headers` is not accepted"
      : "set it in `headers`";
    return refused(`It requires authorization (HTTP 401): ${advice}.`);
  }
  if (status === 403) return refused(deniedAccess(response));
  // With a session id, 404 means that the session is unknown; otherwise the address may be wrong.
  if (status === 404 && request.headers.has("mcp-session-id"))
    return refused("It has forgotten the session (HTTP 404).", true);
  if (status === 429 || status >= 500) {
    const retryAfterMs = retryAfterOf(response);
    const pause =
      retryAfterMs === undefined
        ? ""
        : ` Wait ${Math.ceil(retryAfterMs / 1000)} seconds before the next request.`;
    const reason =
      status === 429 ? "It gets too many requests (HTTP 429)." : `It has an internal error (HTTP ${status}).`;
    return new ServerFailure(`${reason}${pause}`, {
      outcome: status === 429 ? "refused" : "unknown",
      retryAfterMs,
    });
  }
  const isEmpty = status === 202 || status === 204 || status === 205;
  if (request.expectsResult && isEmpty)
    return new ServerFailure(`${notMcp}: it returns no result (HTTP ${status}).`, { outcome: "unknown" });
  if (request.method === "GET" && response.ok && !isEventStream(response))
    return new ServerFailure(`${notMcp}: its response is not an event stream.`, { outcome: "refused" });
  return undefined;
}

/** Explains a redirect that was not followed. `text` is the SDK's message, which names the target. */
export function redirectText(status: number, text: string): string {
  const [target] = /https?:\/\/[^\s;]+/.exec(text) ?? [];
  const where = target === undefined ? "elsewhere" : `to ${cleanLine(target, 200)}`;
  return `It redirects ${where} (HTTP ${status}), which is not followed: \`url\` must be the server's own address.`;
}

function deniedAccess(response: Response): string {
  const challenge = response.headers.get("www-authenticate") ?? "";
  if (!/(?:^|[\s,])error\s*=\s*"?insufficient_scope\b/i.test(challenge))
    return "It denies access (HTTP 403).";
  const [, quoted, bare] = /(?:^|[\s,])scope\s*=\s*(?:"([^"]*)"|([^\s,"]+))/i.exec(challenge) ?? [];
  const scope = cleanLine(quoted ?? bare ?? "", 200);
  const scopeText = scope === "" ? "another scope" : `the scope "${scope}"`;
  return `It denies access (HTTP 403, insufficient_scope): the authorization in \`headers\` needs ${scopeText}.`;
}

/** The `Retry-After` header (seconds or a date) in milliseconds, at most a day. */
function retryAfterOf(response: Response): number | undefined {
  const text = response.headers.get("retry-after")?.trim() ?? "";
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(ms) ? Math.min(Math.max(0, ms), 86_400_000) : undefined;
}
