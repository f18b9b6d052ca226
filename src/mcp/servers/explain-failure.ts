import { cleanLine } from "../clean-text.ts";
import { limits } from "../limits.ts";
import { TooLongError } from "./bound-response.ts";
import type { McpSdk } from "./load-mcp-sdk.ts";
import { redirectText } from "./refused-response.ts";
import { type Outcome, ServerFailure, timedOut } from "./server-failure.ts";

/** Errors before a connection was established. */
const unreached: ReadonlyMap<unknown, string> = new Map([
  ["ECONNREFUSED", "It refused the connection."],
  ["ENOTFOUND", "Its host name does not exist."],
  ["EAI_AGAIN", "Its host name could not be looked up."],
  ["EHOSTUNREACH", "Its host cannot be reached."],
  ["ENETUNREACH", "Its network cannot be reached."],
  ["UND_ERR_CONNECT_TIMEOUT", "It did not accept the connection."],
]);

/** Errors of responses. */
const unreadable: ReadonlyMap<unknown, string> = new Map([
  ["UND_ERR_HEADERS_OVERFLOW", "The headers of its response are too long."],
  ["UND_ERR_HEADERS_TIMEOUT", "It did not begin to answer."],
]);
const untrusted = /CERT|SELF_SIGNED|^ERR_TLS/;

/**
 * Explains an error of the SDK, of `fetch` or of a transport. Error texts are not passed on, because they quote
 * addresses, headers and bodies; only a server's own error message is, cleaned and shortened.
 */
export function toServerFailure(sdk: McpSdk, error: unknown, timeoutMs: number): ServerFailure {
  for (const cause of chainOf(error)) {
    const explained = cause instanceof ServerFailure ? cause : explain(sdk, cause, timeoutMs);
    if (explained !== undefined) return explained;
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
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const reason = unreached.get(code);
  if (reason !== undefined) return failure(reason, "not_sent", true);
  if (untrusted.test(code)) return failure(`Its certificate is not trusted (${code}).`, "not_sent");
  const name = error instanceof Error ? error.name : "";
  if (name === "HTTPParserError")
    return failure("What answers at its address does not speak HTTP.", "unknown");
  const fault = unreadable.get(code);
  if (fault !== undefined) return failure(fault, "unknown");
  // An HTTP response that is not JSON or not JSON-RPC.
  if (name === "SyntaxError" || name === "ZodError")
    return failure("What answers at its address does not speak MCP.", "unknown");
  if (error instanceof TooLongError) {
    return failure(error.message, "unknown");
  }
  if (error instanceof sdk.SdkHttpError) return failure(statusText(error), "refused", error.status === 404);
  if (error instanceof sdk.ProtocolError) {
    if (error.data instanceof ServerFailure) return error.data;
    const text = cleanLine(error.message, limits.errorChars);
    return failure(`It answered with error ${error.code}: ${text}`, "refused");
  }
  if (!(error instanceof sdk.SdkError)) return undefined;
  switch (error.code) {
    case sdk.SdkErrorCode.RequestTimeout:
      return timedOut("answer", timeoutMs, { outcome: "unknown", isTimeout: true, cause: error });
    case sdk.SdkErrorCode.NotConnected:
      return failure("It is not connected.", "not_sent", true);
    case sdk.SdkErrorCode.InvalidResult:
      return failure("Its answer is not what the protocol asks for.", "unknown");
    case sdk.SdkErrorCode.UnsupportedResultType:
      return failure("It asks for input from a person, which agents do not support.", "refused");
    case sdk.SdkErrorCode.ClientHttpUnexpectedContent:
      return failure("What answers at its address does not speak MCP.", "unknown");
    default:
      return undefined;
  }
}

// `refusedResponse` handles other statuses before the SDK sees them.
function statusText({ status, message }: { readonly status: number; readonly message: string }): string {
  if (status === 404) return "There is nothing at its address (HTTP 404).";
  if (status >= 300 && status < 400) return redirectText(status, message);
  return `It answered with HTTP ${status}.`;
}

/** An error followed by its causes. */
function chainOf(error: unknown): readonly unknown[] {
  const chain: unknown[] = [];
  for (let current = error; current !== undefined && chain.length < 10; ) {
    chain.push(current);
    if (!(current instanceof Error)) break;
    current = current.cause ?? (current instanceof AggregateError ? current.errors[0] : undefined);
  }
  return chain;
}
