import type { IncomingMessage } from "node:http";
import { MIMEType } from "node:util";
import { KitError } from "../../base/kit-error.ts";
import { parseJson } from "../../base/parse-json.ts";
import type { ServerLimits } from "../limits.ts";

/** A request whose body is yet to be read. */
export interface BodySource {
  readonly raw: Request;
  /** The same request as its connection has it; absent for one that came without a connection. */
  readonly incoming: IncomingMessage | undefined;
}

/**
 * The JSON object that a request carries; `{}` for an empty body.
 *
 * Counts the bytes that arrive and does not trust `Content-Length`. Throws `unsupported_media_type`,
 * `payload_too_large`, `invalid_json`, or `invalid_request` when the JSON is not an object.
 */
export async function readJsonBody(
  source: BodySource,
  limits: ServerLimits,
): Promise<Record<string, unknown>> {
  const mediaType = source.raw.headers.get("content-type");
  if (mediaType !== null && !isJson(mediaType)) throw unsupported("The body is not application/json.");
  const bytes = await readBody(source, limits);
  if (bytes.length === 0) return {};
  if (mediaType === null) throw unsupported("The body has no Content-Type.");
  const value = parseJson(decodeUtf8(bytes), { maxDepth: limits.jsonDepth });
  if (isObject(value)) return value;
  throw new KitError({
    code: "invalid_request",
    message: "The body is not valid.",
    meta: { issues: [{ path: "body", message: "must be a JSON object" }] },
  });
}

/** A body as it came, of any type. Throws `unsupported_media_type` or `payload_too_large`. */
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

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isJson(mediaType: string): boolean {
  if (mediaType === "application/json") return true;
  try {
    const { essence, params } = new MIMEType(mediaType);
    return essence === "application/json" && (params.get("charset") ?? "utf-8").toLowerCase() === "utf-8";
  } catch {
    return false;
  }
}

/** From the connection itself: a body as a web stream costs as much as the rest of a request. */
function readIncoming(incoming: IncomingMessage, limit: number): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  const chunks: Uint8Array[] = [];
  let length = 0;
  const settle = (error?: KitError): void => {
    incoming.off("data", onData).off("end", onEnd).off("error", onCut).off("close", onCut);
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
  const onEnd = (): void => settle();
  const onCut = (cause?: Error): void => settle(unreadable("invalid_request", cause));
  incoming.on("data", onData).on("end", onEnd).on("error", onCut).on("close", onCut);
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

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch (cause) {
    throw unreadable("invalid_json", cause);
  }
}

function unreadable(code: "invalid_request" | "invalid_json", cause: unknown): KitError {
  const fault = code === "invalid_json" ? "is not valid UTF-8" : "did not arrive completely";
  return new KitError({ code, message: `The body ${fault}.`, cause });
}

function tooLarge(limit: number): KitError {
  return new KitError({
    code: "payload_too_large",
    message: `The body is larger than ${limit} bytes.`,
    meta: { limit_bytes: limit },
  });
}

function unsupported(message: string): KitError {
  return new KitError({ code: "unsupported_media_type", message });
}
