import { TooLongError } from "./bounded-fetch.ts";
import { cleanLine } from "./clean-text.ts";
import { limits } from "./limits.ts";
import type { McpSdk } from "./load-sdk.ts";
import { type Outcome, ServerFailure, tooSlow } from "./server-failure.ts";

/** Errors of a connection that was never made. */
const unreached: ReadonlyMap<unknown, string> = new Map([
  ["ECONNREFUSED", "It refused the connection."],
  ["ENOTFOUND", "Its host name is not known."],
  ["EAI_AGAIN", "Its host name could not be looked up."],
  ["EHOSTUNREACH", "Its host cannot be reached."],
  ["ENETUNREACH", "Its network cannot be reached."],
  ["UND_ERR_CONNECT_TIMEOUT", "It did not take the connection."],
]);

/**
 * What an error of the SDK, of `fetch` or of a transport means. The texts of errors are not handed on,
 * because they quote addresses, headers and bodies; a server's own error message is, cleaned and short.
 */
export function toServerFailure(sdk: McpSdk, error: unknown, timeoutMs: number): ServerFailure {
  for (const one of chainOf(error)) {
    const known = one instanceof ServerFailure ? one : explain(sdk, one, timeoutMs);
    if (known !== undefined) return known;
  }
  return new ServerFailure("The connection to it was lost.", {
    outcome: "unknown",
    isLost: true,
    cause: error,
  });
}

function explain(sdk: McpSdk, error: unknown, timeoutMs: number): ServerFailure | undefined {
  const failure = (message: string, outcome: Outcome, isLost = false): ServerFailure =>
    new ServerFailure(message, { outcome, isLost, cause: error });
  const reason = unreached.get(error instanceof Error && "code" in error ? error.code : undefined);
  if (reason !== undefined) return failure(reason, "not_sent", true);
  if (error instanceof TooLongError) {
    return failure(`It sent a message of more than ${limits.messageBytes / 1024 / 1024} MB.`, "unknown");
  }
  if (error instanceof sdk.SdkHttpError) {
    // A session that the server has forgotten is answered with 404.
    return failure(
      statusText(error.status),
      error.status >= 500 ? "unknown" : "refused",
      error.status === 404,
    );
  }
  if (error instanceof sdk.ProtocolError) {
    if (error.data instanceof ServerFailure) return error.data;
    const text = cleanLine(error.message, limits.errorChars);
    return failure(`It answered with error ${error.code}: ${text}`, "refused");
  }
  if (!(error instanceof sdk.SdkError)) return undefined;
  switch (error.code) {
    case sdk.SdkErrorCode.RequestTimeout:
      return tooSlow("answer", timeoutMs, { outcome: "unknown", isTimeout: true, cause: error });
    case sdk.SdkErrorCode.NotConnected:
      return failure("It is not connected.", "not_sent", true);
    case sdk.SdkErrorCode.InvalidResult:
      return failure("Its answer is not what the protocol asks for.", "unknown");
    case sdk.SdkErrorCode.UnsupportedResultType:
      return failure("It wants to ask a person something, which agents cannot.", "refused");
    case sdk.SdkErrorCode.ClientHttpUnexpectedContent:
      return failure("What answers at its address does not speak MCP.", "unknown");
    default:
      return undefined;
  }
}

function statusText(status: number): string {
  if (status === 401) return "It wants authorization (HTTP 401): give it in `headers`.";
  if (status === 403) return "It denies access (HTTP 403).";
  if (status === 404) return "There is nothing at its address, or it has forgotten the session (HTTP 404).";
  return `It answered with HTTP ${status}.`;
}

/** An error, and what it was wrapped around. */
function chainOf(error: unknown): readonly unknown[] {
  const chain: unknown[] = [];
  for (let current = error; current !== undefined && chain.length < 10; ) {
    chain.push(current);
    if (!(current instanceof Error)) break;
    current = current.cause ?? (current instanceof AggregateError ? current.errors[0] : undefined);
  }
  return chain;
}
