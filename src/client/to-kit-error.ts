import { attempt } from "../base/attempt.ts";
import { KitError } from "../base/kit-error.ts";
import { type ErrorCode, errorCodes, isErrorCode, isRetryableCode } from "../protocol/error-code.ts";
import type { ErrorEnvelope } from "../protocol/errors.ts";

/** Creates the error of a reply: the type in its envelope is the code, also if this client does not know the code. */
export async function toKitError(response: Response): Promise<KitError> {
  const text = await response.text().catch(() => "");
  const meta = { status: response.status, ...retryAfterOf(response) };
  return fromEnvelope(parse(text), meta) ?? new KitError({ ...ofStatus(response.status), meta });
}

/** Creates the error of an envelope or a frame; undefined for other values. */
export function fromEnvelope(
  body: unknown,
  meta: Readonly<Record<string, unknown>> = {},
): KitError | undefined {
  if (!isEnvelope(body)) return undefined;
  const { type, message, details, meta: own, dev } = body.error;
  // `kit dev` sends more details.
  const hint = [details, dev?.hint].find((text) => typeof text === "string" && text !== "");
  return new KitError({
    code: type,
    message,
    ...(typeof hint === "string" ? { hint } : {}),
    meta: { ...meta, ...own },
  });
}

export function unreachable(cause: unknown, target?: URL): KitError {
  return new KitError({
    code: "unavailable",
    message: "The server cannot be reached.",
    hint: target && `Nothing answers at ${target.origin}.`,
    cause,
  });
}

export function connectionLost(cause?: unknown): KitError {
  return new KitError({
    code: "unavailable",
    message: "The connection to the server was lost.",
    cause,
  });
}

/** Creates the error of a connection that the client has closed: unlike a lost one, it is not opened again. */
export function connectionClosed(): KitError {
  return new KitError({ code: "aborted", message: "The connection was closed." });
}

export function notAnAnswer(status: number, cause?: unknown): KitError {
  return new KitError({
    code: "unavailable",
    message: "The answer does not come from a kit server.",
    hint: "Check baseUrl: it leads to another service, or to a proxy.",
    meta: { status },
    cause,
  });
}

/** Whether the same call can succeed a little later. */
export function isTransient(error: unknown): error is KitError {
  if (!(error instanceof KitError)) return false;
  if (error.meta?.status === undefined) return error.code === "unavailable";
  return isRefusal(error);
}

/** Whether a server has answered that the same call can succeed a little later. Accepted work that has failed stays so. */
export function isRefusal({ code, meta }: KitError): boolean {
  const isAsked =
    meta?.status === 429 || meta?.status === 503 || (meta?.status === 409 && code === "lease_lost");
  return isAsked && meta.dispatch_id === undefined && retryable(code);
}

/** Creates the error of a stream that can be requested again; `undefined` if its work has failed. */
export function toOutage(body: unknown): KitError | undefined {
  const code = fromEnvelope(body)?.code ?? "";
  const error = isErrorCode(code) ? fromEnvelope(body, { status: errorCodes[code].status }) : undefined;
  return error !== undefined && error.meta?.run_id === undefined && isRefusal(error) ? error : undefined;
}

function retryable(code: string): boolean {
  return !isErrorCode(code) || isRetryableCode(code);
}

function parse(text: string): unknown {
  return attempt(() => JSON.parse(text));
}

function isEnvelope(body: unknown): body is ErrorEnvelope {
  if (typeof body !== "object" || body === null || !("error" in body)) return false;
  const { error } = body;
  if (typeof error !== "object" || error === null || !("type" in error) || !("message" in error))
    return false;
  return typeof error.type === "string" && typeof error.message === "string";
}

function retryAfterOf({ headers }: Response): { readonly retry_after_s?: number } {
  const value = headers.get("retry-after");
  if (value === null) return {};
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1_000;
  return Number.isNaN(seconds) ? {} : { retry_after_s: Math.max(0, Math.ceil(seconds)) };
}

/** Creates the error of a reply that is not kit's, usually a proxy's. */
function ofStatus(status: number): { readonly code: ErrorCode; readonly message: string } {
  const codes: Readonly<Record<number, ErrorCode>> = {
    400: "invalid_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "payload_too_large",
    429: "too_many_requests",
  };
  const code = codes[status] ?? (status >= 502 && status <= 504 ? "unavailable" : "internal_error");
  return { code, message: `The server answered ${status}.` };
}
