import { KitError } from "../base/kit-error.ts";
import { thrownText } from "../base/thrown.ts";
import { toOpenAiError } from "../interfaces/openai/error.ts";
import { type ErrorCode, errorCodes, isErrorCode } from "../protocol/error-code.ts";
import type { ErrorEnvelope, ErrorIssue } from "../protocol/errors.ts";
import { hideRepeatedKeys, isProviderError } from "../protocol/provider-fault.ts";

// Other sites cannot frame or read a reply, browsers do not guess its type, and no cache stores it.
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

/** The headers of a stream of events; they ask proxies not to buffer it. */
export const eventStreamHeaders = {
  ...commonHeaders,
  "cache-control": "no-store, no-transform",
  "content-type": "text/event-stream; charset=utf-8",
  "x-accel-buffering": "no",
};

/** The parts of a reply, for code without a `Response`. */
export interface ReplyParts {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Creates a JSON reply with the headers of every reply. */
export function jsonReply(value: unknown, status = 200): Response {
  return new Response(JSON.stringify(value), { status, headers: jsonHeaders });
}

/** Creates the parts of a JSON reply with any status and additional headers. */
export function jsonParts(value: unknown, { status, headers }: Omit<ReplyParts, "body">): ReplyParts {
  return { status, headers: { ...jsonHeaders, ...headers }, body: JSON.stringify(value) };
}

/** Creates an HTML reply; `policy` is its content security policy. */
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

/** Creates a reply with a file's content, or a reply about a file. */
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

/** Creates a reply without a body. */
export function emptyReply(headers: Readonly<Record<string, string>>): Response {
  return new Response(null, { status: 204, headers: { ...commonHeaders, ...headers } });
}

/** Converts an error reply to one whose body is a sentence. */
export async function toPlainReply(reply: Response): Promise<Response> {
  const { error }: ErrorEnvelope = JSON.parse(await reply.text());
  const headers = new Headers(reply.headers);
  headers.set("content-type", "text/plain; charset=utf-8");
  headers.delete("content-length");
  return new Response(`${error.message} ${error.details}`.trimEnd(), { status: reply.status, headers });
}

/** JSON-RPC's own codes, and one for every other refusal. */
const rpcCodes: Partial<Record<ErrorCode, number>> = {
  invalid_json: -32_700,
  invalid_request: -32_600,
  internal_error: -32_603,
};

/** Converts an error reply to one whose body is a JSON-RPC error; a reply that has one stays as it is. */
export async function toRpcReply(
  reply: Response,
  toError: (envelope: ErrorEnvelope) => object = ({ error }) => toRpcError(error),
): Promise<Response> {
  const text = await reply.text();
  // The reply to a client that has left is empty.
  if (text === "") return new Response(null, reply);
  const { error, jsonrpc }: Partial<ErrorEnvelope> & { readonly jsonrpc?: unknown } = JSON.parse(text);
  const headers = new Headers(reply.headers);
  if (jsonrpc !== undefined || error === undefined)
    return new Response(text, { status: reply.status, headers });
  headers.delete("content-length");
  const body = { jsonrpc: "2.0", id: null, error: toError({ error }) };
  return new Response(JSON.stringify(body), { status: reply.status, headers });
}

/** Converts an error reply to one in OpenAI's form. */
export async function toOpenAiReply(reply: Response): Promise<Response> {
  const { status, headers } = reply;
  const error = toOpenAiError(JSON.parse(await reply.text()), status);
  const own = new Headers(headers);
  own.delete("content-length");
  return new Response(JSON.stringify(error), { status, headers: own });
}

/** Converts the error of an envelope to JSON-RPC's. */
export function toRpcError({ type, message, details, meta }: ErrorEnvelope["error"]) {
  const text = `${message} ${details}`.trimEnd();
  return { code: rpcCodes[type] ?? -32_000, message: text, data: { type, ...meta } };
}

export interface ErrorReplyOptions {
  /** Adds stack and hint. */
  readonly dev: boolean;
  /** Masks secrets in the texts of the reply. */
  readonly masked?: <Value>(value: Value) => Value;
}

/** Creates the error reply for a thrown value: a `KitError` by its code, anything else as `internal_error`. */
export function toErrorReply(error: unknown, options: ErrorReplyOptions): ReplyParts {
  const knownError = toKitError(error);
  return jsonParts(toErrorEnvelope(error, options), {
    status: errorCodes[knownError.code].status,
    headers: headersOf(knownError),
  });
}

/** Creates the error envelope that routes, streams and WebSockets send. */
export function toErrorEnvelope(
  error: unknown,
  { dev, masked = (value) => value }: ErrorReplyOptions,
): ErrorEnvelope {
  const knownError = toKitError(error);
  const meta = metaOf(knownError);
  const { message } = knownError;
  const errorBody = {
    message,
    details: detailsOf(knownError),
    meta,
    ...(dev ? devOf(error, knownError) : {}),
  };
  return { error: { type: knownError.code, ...masked(errorBody) } };
}

/** Adds the issues of an invalid request, on which clients can rely, also if no single field is wrong. */
function metaOf({ code, message, meta }: KitError<ErrorCode>): KitError["meta"] {
  if (code !== "invalid_request" || Array.isArray(meta?.issues)) return meta;
  return { ...meta, issues: [{ path: "request", message }] };
}

/**
 * Returns the details for a developer. The error of a refused request has a hint at most, without stack: foreign pages
 * and other clients must not learn paths of this machine.
 */
function devOf(error: unknown, knownError: KitError<ErrorCode>): Pick<ErrorEnvelope["error"], "dev"> {
  const hint = knownError.hint === undefined ? {} : { hint: knownError.hint };
  const isFault = errorCodes[knownError.code].status >= errorCodes.internal_error.status;
  const dev = isFault ? { ...hint, ...describe(error) } : hint;
  return Object.keys(dev).length === 0 ? {} : { dev };
}

/** Replaces every error except a `KitError` with one of kit's codes: its text can be private. */
function toKitError(error: unknown): KitError<ErrorCode> {
  if (error instanceof KitError) {
    // Read each field once: a getter of the project's code can return another value the second time.
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

// Agents and tools can throw their own `KitError`.
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
  // The project's code can set any value here.
  return issues.map((issue: unknown) => `${fieldOf(issue, "path")}: ${fieldOf(issue, "message")}`).join("; ");
}

/** Returns the details of a temporary error: the unavailable store, the start of the outage, and the time of a retry; else "". */
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

/** Returns the methods that a route allows; undefined for every other error. */
function allowedBy({ code, meta }: KitError<ErrorCode>): string | undefined {
  return code === "method_not_allowed" && Array.isArray(meta?.allow) ? meta.allow.join(", ") : undefined;
}

function headersOf(error: KitError<ErrorCode>): Record<string, string> {
  const headers: Record<string, string> = {};
  if (error.code === "unauthorized" || error.meta?.reason === "insufficient_scope")
    headers["www-authenticate"] = challengeOf(error);
  const allowed = allowedBy(error);
  if (allowed !== undefined) headers.allow = allowed;
  const waitS = error.meta?.retry_after_s;
  // The header holds whole seconds.
  if (typeof waitS === "number" && Number.isFinite(waitS)) headers["retry-after"] = String(Math.ceil(waitS));
  return headers;
}

/** Where and for what a client gets a token (RFC 6750, RFC 9728). */
function challengeOf({ meta }: KitError<ErrorCode>): string {
  const { resource_metadata, scope, reason } = meta ?? {};
  const parts = Object.entries({ error: reason, resource_metadata, scope }).flatMap(([name, value]) =>
    typeof value === "string" ? [`${name}="${value.replace(/[^\x20-\x7e]|["\\]/g, "")}"`] : [],
  );
  return parts.length === 0 ? "Bearer" : `Bearer ${parts.join(", ")}`;
}

// Causes can form long chains and circles, and reading a thrown value can throw.
function describe(error: unknown, depth = 5): Record<string, unknown> {
  try {
    if (!(error instanceof Error)) return { thrown: thrownText(error) };
    const cause = error.cause === undefined || depth === 0 ? {} : { cause: describe(error.cause, depth - 1) };
    const clean = isProviderError(error) ? hideRepeatedKeys : (text: string) => text;
    const stack = ownFramesFirst(error.stack);
    return { name: error.name, message: clean(error.message), stack: stack && clean(stack), ...cause };
  } catch {
    return { thrown: thrownText(error) };
  }
}

/** The folder of kit's code: its stack frames help only developers of kit. */
const kitFolder = new URL("..", import.meta.url);

/** Moves the frames of the project's code to the top of a stack. */
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
