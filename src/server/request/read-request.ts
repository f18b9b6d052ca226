import type { IncomingMessage } from "node:http";
import { MIMEType } from "node:util";
import type { z } from "zod";
import { keyOfSender } from "../../app/service/stored-input.ts";
import { attempt } from "../../base/attempt.ts";
import { KitError } from "../../base/kit-error.ts";
import { faultOfName } from "../../base/names.ts";
import { parseJson } from "../../base/parse-json.ts";
import { isRecord } from "../../base/record.ts";
import type { Principal } from "../../protocol/access.ts";
import type { ErrorIssue } from "../../protocol/errors.ts";
import type { ServerLimits } from "../limits.ts";

interface SenderHead {
  readonly principal: Principal | undefined;
  header(name: string): string | undefined;
}

/**
 * Returns the `Idempotency-Key` of a request, scoped to its principal: work that the same principal requests again under
 * the same key is done once. Throws `invalid_request` unless the key has 1 to 128 printable ASCII characters.
 */
export function readIdempotencyKey({ header, principal }: SenderHead): string | undefined {
  const key = header("idempotency-key");
  if (key === undefined) return undefined;
  if (/^[\x20-\x7e]{1,128}$/.test(key)) return keyOfSender(principal, key);
  throw invalidHeader("idempotency-key", "must have 1 to 128 printable ASCII characters");
}

/**
 * Returns the index of the event after which a stream resumes: `Last-Event-ID`, which a browser sends when it
 * reconnects, else `after` of the query. Throws `invalid_request`.
 */
export function readEventPosition(
  { header }: Pick<SenderHead, "header">,
  query: { readonly after?: number | "now" | undefined },
): number | "now" | undefined {
  return readLastEventId({ header }) ?? query.after;
}

/** Returns the `Last-Event-ID` of a request. Throws `invalid_request`. */
export function readLastEventId({ header }: Pick<SenderHead, "header">): number | undefined {
  const id = header("last-event-id");
  if (id === undefined || id === "") return undefined;
  if (/^\d{1,15}$/.test(id)) return Number(id);
  throw invalidHeader("last-event-id", "must be the id of an event of this stream");
}

/** Whether the client has already read a part of the stream: a browser sends `Last-Event-ID` when it reconnects. */
export function isReconnect({ header }: Pick<SenderHead, "header">): boolean {
  return (header("last-event-id") ?? "") !== "";
}

function invalidHeader(name: string, message: string): KitError {
  return new KitError({
    code: "invalid_request",
    message: "A header is invalid.",
    meta: { issues: [{ path: `headers.${name}`, message }] },
  });
}

/**
 * Parses the query of a URL. An empty value counts as absent, because forms send empty fields.
 *
 * Throws `invalid_request` for text that is not percent-encoded UTF-8 and for a repeated parameter. `isKnown` says which
 * parameters the route has, where others belong to the project's code; default: all.
 */
export function readQuery(url: string, isKnown?: (name: string) => boolean): Record<string, unknown> {
  const query: Record<string, unknown> = Object.create(null);
  const start = url.indexOf("?");
  if (start === -1) return query;
  for (const pair of url.slice(start + 1).split("&")) {
    const equals = pair.indexOf("=");
    const name = decode(equals === -1 ? pair : pair.slice(0, equals));
    if (isKnown?.(name ?? "") === false) continue;
    const value = equals === -1 ? "" : decode(pair.slice(equals + 1));
    if (name === undefined || value === undefined) {
      throw invalidQuery({ path: "query", message: "must be percent-encoded UTF-8" });
    }
    if (value === "") continue;
    if (name in query) throw invalidQuery({ path: `query.${name.slice(0, 80)}`, message: "is given twice" });
    query[name] = value;
  }
  return query;
}

function decode(text: string): string | undefined {
  return attempt(() => decodeURIComponent(text.replaceAll("+", " ")));
}

function invalidQuery(issue: ErrorIssue): KitError {
  return new KitError({
    code: "invalid_request",
    message: "The query is not valid.",
    meta: { issues: [issue] },
  });
}

/**
 * Decodes one segment of a URL path as a name or id.
 *
 * Throws `invalid_request` for text that is not UTF-8, is empty, is longer than `maxBytes` (128), is a dot segment, or
 * holds a separator or a control character.
 */
export function readSegment(raw: string, options: { name: string; maxBytes?: number }): string {
  // Most names are not percent-encoded.
  const text = raw.includes("%") ? attempt(() => decodeURIComponent(raw)) : raw;
  const fault = text === undefined ? "must be percent-encoded UTF-8" : faultOfName(text, options.maxBytes);
  if (text !== undefined && fault === undefined) return text;
  throw invalidSegment(options.name, fault ?? "");
}

/** The error for a path segment that cannot be a name or id. */
export function invalidSegment(name: string, message: string): KitError {
  return new KitError({
    code: "invalid_request",
    message: `The ${name} in the path is not valid: it ${message}.`,
    meta: { issues: [{ path: `path.${name}`, message }] },
  });
}

/** A request whose body has not been read. */
export interface BodySource {
  readonly raw: Request;
  /** The same request in Node's form; absent for a request without a socket. */
  readonly incoming: IncomingMessage | undefined;
}

/**
 * Reads the JSON object in a request's body; `{}` for an empty body.
 *
 * It counts the bytes that arrive and does not trust `Content-Length`. Throws `unsupported_media_type`,
 * `payload_too_large`, `invalid_json`, or `invalid_request` if the JSON is not an object.
 */
export async function readJsonBody(
  source: BodySource,
  limits: ServerLimits,
): Promise<Record<string, unknown>> {
  const mediaType = source.raw.headers.get("content-type");
  if (mediaType !== null && mediaType !== "application/json" && !isJson(mediaType))
    throw unsupported("The body is not application/json.");
  const bytes = await readBody(source, limits);
  if (bytes.length === 0) return {};
  if (mediaType === null) throw unsupported("The body has no Content-Type.");
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch (cause) {
    throw unreadable("invalid_json", cause);
  }
  const value = parseJson(text, { maxDepth: limits.jsonDepth });
  if (isRecord(value)) return value;
  throw new KitError({
    code: "invalid_request",
    message: "The body is not valid.",
    meta: { issues: [{ path: "body", message: "must be a JSON object" }] },
  });
}

/** Reads the bytes of a body of any type. Throws `unsupported_media_type` or `payload_too_large`. */
export async function readBody(source: BodySource, limits: ServerLimits): Promise<Uint8Array> {
  const { headers } = source.raw;
  const encoding = headers.get("content-encoding");
  if (encoding !== null && encoding.toLowerCase() !== "identity") {
    throw unsupported("Compressed bodies are not accepted.");
  }
  const limit = limits.bodyBytes;
  if (Number(headers.get("content-length")) > limit) throw tooLarge(limit);
  return await (source.incoming === undefined
    ? readStream(source.raw, limit)
    : readIncoming(source.incoming, limit));
}

function isJson(mediaType: string): boolean {
  try {
    const { essence, params } = new MIMEType(mediaType);
    return essence === "application/json" && (params.get("charset") ?? "utf-8").toLowerCase() === "utf-8";
  } catch {
    return false;
  }
}

/** Reads from the connection: a web stream of the body would cost as much as the rest of the request. */
function readIncoming(incoming: IncomingMessage, limit: number): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  const chunks: Uint8Array[] = [];
  let length = 0;
  const settle = (error?: KitError): void => {
    incoming.off("data", onData).off("end", settle).off("error", onCut).off("close", onCut);
    const [only] = chunks;
    if (error !== undefined) reject(error);
    else resolve(only !== undefined && chunks.length === 1 ? only : Buffer.concat(chunks, length));
  };
  const onData = (chunk: Uint8Array): void => {
    length += chunk.length;
    chunks.push(chunk);
    if (length <= limit) return;
    incoming.pause();
    settle(tooLarge(limit));
  };
  const onCut = (cause?: Error): void => settle(unreadable("invalid_request", cause));
  incoming.on("data", onData).on("end", settle).on("error", onCut).on("close", onCut);
  return promise;
}

async function readStream(request: Request, limit: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of request.body ?? []) {
      length += chunk.length;
      if (length > limit) break;
      chunks.push(chunk);
    }
  } catch (cause) {
    throw unreadable("invalid_request", cause);
  }
  if (length > limit) throw tooLarge(limit);
  return Buffer.concat(chunks, length);
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

function unreadable(code: "invalid_request" | "invalid_json", cause: unknown): KitError {
  const fault = code === "invalid_json" ? "is not valid UTF-8" : "did not arrive completely";
  return new KitError({ code, message: `The body ${fault}.`, cause });
}

/** The error for a body above a limit in bytes. */
export function tooLarge(limit: number): KitError {
  return new KitError({
    code: "payload_too_large",
    message: `The body is larger than ${limit} bytes.`,
    meta: { limit_bytes: limit },
  });
}

function unsupported(message: string): KitError {
  return new KitError({ code: "unsupported_media_type", message });
}

const maxIssues = 20;
const maxIssueText = 200;

/**
 * Checks an input against its schema and returns the typed value. Throws `invalid_request`; its `meta.issues` names each
 * error as `<part>.<path>`, such as `body.format`.
 */
export function checkInput<Value>(
  part: "query" | "body" | "frame",
  value: unknown,
  schema: z.ZodType<Value>,
): Value {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issues = result.error.issues.flatMap((issue) => toIssues(part, issue)).slice(0, maxIssues);
  throw new KitError({
    code: "invalid_request",
    message: `The ${part} is not valid.`,
    meta: { issues },
  });
}

/**
 * Prefixes the paths in an error of the project with the part of the request: the project does not know that `cursor`
 * came as `query.cursor`. Returns other errors unchanged.
 */
export function locateIssues(error: unknown, part: "query" | "body"): unknown {
  if (!(error instanceof KitError) || !Array.isArray(error.meta?.issues)) return error;
  const issues = error.meta.issues.map(({ path, message }: ErrorIssue) => ({
    path: /^(?:query|body|path|headers|frame)\./.test(path) ? path : `${part}.${path}`,
    message,
  }));
  const { code, message, hint, cause } = error;
  const init = { code, message, meta: { ...error.meta, issues }, cause };
  return new KitError(hint === undefined ? init : { ...init, hint });
}

function toIssues(part: string, issue: z.core.$ZodIssue): ErrorIssue[] {
  const path = [part, ...issue.path].map(String);
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => toIssue([...path, key], "is not known here"));
  }
  return [toIssue(path, issue.message)];
}

// A client can send a key of a megabyte; the reply does not repeat all of it.
function toIssue(path: readonly string[], message: string): ErrorIssue {
  return { path: path.join(".").slice(0, maxIssueText), message: message.slice(0, maxIssueText) };
}
