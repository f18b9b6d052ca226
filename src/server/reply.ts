import { KitError } from "../base/kit-error.ts";
import { thrownText } from "../protocol/error-cause.ts";
import { type ErrorCode, errorCodes, isErrorCode } from "../protocol/error-code.ts";
import type { ErrorEnvelope, ErrorIssue } from "../protocol/errors.ts";

// Nothing this service sends may be framed, sniffed, cached by others or read by another site.
const commonHeaders = {
  "cache-control": "no-store",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

const jsonHeaders = {
  ...commonHeaders,
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "content-type": "application/json; charset=utf-8",
};

const eventStreamHeaders = {
  ...commonHeaders,
  "cache-control": "no-store, no-transform",
  "content-type": "text/event-stream; charset=utf-8",
  "x-accel-buffering": "no",
};

/** A reply in parts, for where there is no `Response`. */
export interface ReplyParts {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A JSON reply with the headers that every reply of kit has. */
export function jsonReply(value: unknown, status = 200): Response {
  return new Response(JSON.stringify(value), { status, headers: jsonHeaders });
}

/** A reply that is a stream of events. No proxy on its way may hold it back. */
export function eventStreamReply(body: ReadableStream<Uint8Array> | null): Response {
  return new Response(body, { status: 200, headers: eventStreamHeaders });
}

/** A JSON reply of any status, with more headers. */
export function jsonParts(value: unknown, { status, headers }: Omit<ReplyParts, "body">): ReplyParts {
  return { status, headers: { ...jsonHeaders, ...headers }, body: JSON.stringify(value) };
}

/** An HTML reply; `policy` is its content security policy. */
export function htmlReply(
  html: string | null,
  {
    policy,
    status = 200,
    headers = {},
  }: Omit<StaticParts, "headers"> & { readonly policy: string; readonly headers?: StaticParts["headers"] },
): Response {
  return new Response(html, {
    status,
    headers: {
      ...commonHeaders,
      "content-security-policy": policy,
      "content-type": "text/html; charset=utf-8",
      ...headers,
    },
  });
}

interface StaticParts {
  readonly status?: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** A file as it is, or a reply about one. */
export function staticReply(
  body: string | Uint8Array<ArrayBuffer> | null,
  { status = 200, headers }: StaticParts,
): Response {
  return new Response(body, {
    status,
    headers: {
      ...commonHeaders,
      "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
      ...headers,
    },
  });
}

/** A reply without a body. */
export function emptyReply(headers: Readonly<Record<string, string>>): Response {
  return new Response(null, { status: 204, headers: { ...commonHeaders, ...headers } });
}

export interface ErrorReplyOptions {
  /** Adds stack and hint. */
  readonly dev: boolean;
  /** Takes keys out of what is said. */
  readonly masked?: <Value>(value: Value) => Value;
}

/** The error reply for anything thrown: a `KitError` by its code, all else as `internal_error`. */
export function toErrorReply(error: unknown, options: ErrorReplyOptions): ReplyParts {
  const known = toKitError(error);
  return jsonParts(toErrorEnvelope(error, options), {
    status: errorCodes[known.code].status,
    headers: headersOf(known),
  });
}

/** The envelope of an error, as every route, stream and connection sends it. */
export function toErrorEnvelope(
  error: unknown,
  { dev, masked = (value) => value }: ErrorReplyOptions,
): ErrorEnvelope {
  const known = toKitError(error);
  const meta = metaOf(known);
  const { message } = known;
  const errorBody = {
    message,
    details: detailsOf(known),
    meta,
    ...(dev ? devOf(error, known) : {}),
  };
  return { error: { type: known.code, ...masked(errorBody) } };
}

/** Clients may count on the issues of an invalid request, also where no single field of it is wrong. */
function metaOf({ code, message, meta }: KitError<ErrorCode>): KitError["meta"] {
  if (code !== "invalid_request" || Array.isArray(meta?.issues)) return meta;
  return { ...meta, issues: [{ path: "request", message }] };
}

/**
 * The details for a developer. A refused request is not a fault in any code: its error has a hint at most,
 * and strangers, the pages of foreign sites among them, are told nothing of where kit lies on this machine.
 */
function devOf(error: unknown, known: KitError<ErrorCode>): Pick<ErrorEnvelope["error"], "dev"> {
  const hint = known.hint === undefined ? {} : { hint: known.hint };
  const isFault = errorCodes[known.code].status >= errorCodes.internal_error.status;
  const dev = isFault ? { ...hint, ...describe(error) } : hint;
  return Object.keys(dev).length === 0 ? {} : { dev };
}

/** Everything but a `KitError` with a code of ours may say things that no client should read. */
function toKitError(error: unknown): KitError<ErrorCode> {
  if (error instanceof KitError) {
    // Read once: an error of a project's code may say something else the second time.
    const { code, message, hint, meta } = error;
    if (isErrorCode(code)) {
      return new KitError({
        code,
        message,
        hint,
        ...(meta === undefined || !isJson(meta) ? {} : { meta }),
      });
    }
  }
  return new KitError<ErrorCode>({
    code: "internal_error",
    message: "Something went wrong inside kit.",
    cause: error,
  });
}

// An agent or a tool may throw a `KitError` of its own making.
function isJson(meta: unknown): boolean {
  try {
    JSON.stringify(meta);
    return true;
  } catch {
    return false;
  }
}

const advice: Partial<Record<ErrorCode, string>> = {
  invalid_json: "Send one JSON object in UTF-8.",
  unauthorized: "Send an API key in the header: Authorization: Bearer <key>.",
  agent_not_webhook:
    'Declare it in the agent\'s file: export const triggers = { webhook: true }. server.expose = "all" in the configuration serves every agent.',
  unsupported_media_type: "Send the body as application/json.",
  internal_error: "The log of the server says more.",
};

function detailsOf(error: KitError<ErrorCode>): string {
  const { issues } = error.meta ?? {};
  const allowed = allowedBy(error);
  if (allowed !== undefined) return `Allowed: ${allowed}.`;
  if (!Array.isArray(issues)) return advice[error.code] ?? whenToRetry(error);
  // A project's code may have written anything there.
  return issues.map((issue: unknown) => `${fieldOf(issue, "path")}: ${fieldOf(issue, "message")}`).join("; ");
}

/** For errors that pass by themselves: which store is away and since when, and when to try again; else "". */
function whenToRetry({ meta }: KitError<ErrorCode>): string {
  const { store, since, retry_after_s } = meta ?? {};
  const away =
    typeof store === "string" && typeof since === "string" ? `${store} is away since ${since}. ` : "";
  if (typeof retry_after_s !== "number" || !Number.isFinite(retry_after_s)) return away.trimEnd();
  const seconds = Math.ceil(retry_after_s);
  return `${away}Try again in ${seconds} second${seconds === 1 ? "" : "s"}.`;
}

function fieldOf(issue: unknown, field: keyof ErrorIssue): string {
  const value: unknown = Object.getOwnPropertyDescriptor(Object(issue), field)?.value;
  return typeof value === "string" ? value : "";
}

/** The methods that a route takes; undefined for every other error. */
function allowedBy({ code, meta }: KitError<ErrorCode>): string | undefined {
  return code === "method_not_allowed" && Array.isArray(meta?.allow) ? meta.allow.join(", ") : undefined;
}

function headersOf(error: KitError<ErrorCode>): Record<string, string> {
  const headers: Record<string, string> = {};
  if (error.code === "unauthorized") headers["www-authenticate"] = "Bearer";
  const allowed = allowedBy(error);
  if (allowed !== undefined) headers.allow = allowed;
  const waitS = error.meta?.retry_after_s;
  // Whole seconds are all that the header can say.
  if (typeof waitS === "number" && Number.isFinite(waitS)) headers["retry-after"] = String(Math.ceil(waitS));
  return headers;
}

// Causes can be long chains, and even circles; what was thrown may throw when it is looked at.
function describe(error: unknown, depth = 5): Record<string, unknown> {
  try {
    if (!(error instanceof Error)) return { thrown: thrownText(error) };
    const cause = error.cause === undefined || depth === 0 ? {} : { cause: describe(error.cause, depth - 1) };
    return { name: error.name, message: error.message, stack: ownFramesFirst(error.stack), ...cause };
  } catch {
    return { thrown: thrownText(error) };
  }
}

/** The folder of kit's code: its own frames, and those of what it uses, help whoever works on kit. */
const kitFolder = new URL("..", import.meta.url);

/** A stack whose first frames are those of the project's own code. */
function ownFramesFirst(stack: string | undefined): string | undefined {
  const lines = stack?.split("\n") ?? [];
  const isForeign = (line: string): boolean =>
    line.includes("/node_modules/") ||
    line.includes("node:") ||
    line.includes("(<anonymous>)") ||
    line.includes(kitFolder.href) ||
    line.includes(kitFolder.pathname);
  const isFrame = (line: string): boolean => /^\s+at /.test(line);
  const head = lines.filter((line) => !isFrame(line));
  const frames = lines.filter(isFrame);
  const sorted = [...frames.filter((line) => !isForeign(line)), ...frames.filter(isForeign)];
  return stack === undefined ? undefined : [...head, ...sorted].join("\n");
}
