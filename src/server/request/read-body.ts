import { MIMEType } from "node:util";
import { KitError } from "../../base/kit-error.ts";
import { parseJson } from "../../base/parse-json.ts";
import type { ServerLimits } from "../limits.ts";

/**
 * The JSON object that a request carries; `{}` for an empty body.
 *
 * Counts the bytes that arrive and does not trust `Content-Length`. Throws `unsupported_media_type`,
 * `payload_too_large`, `invalid_json`, or `invalid_request` when the JSON is not an object.
 */
export async function readJsonBody(request: Request, limits: ServerLimits): Promise<Record<string, unknown>> {
  const mediaType = request.headers.get("content-type");
  if (mediaType !== null && !isJson(mediaType)) throw unsupported("The body is not application/json.");
  const bytes = await readBody(request, limits);
  if (bytes.length === 0) return {};
  if (mediaType === null) throw unsupported("The body has no Content-Type.");
  const value = parseJson(decodeUtf8(bytes), { maxDepth: limits.jsonDepth });
  if (isObject(value)) return value;
  throw new KitError({ code: "invalid_request", message: "The body must be a JSON object." });
}

/** A body as it came, of any type. Throws `unsupported_media_type` or `payload_too_large`. */
export async function readBody(request: Request, limits: ServerLimits): Promise<Uint8Array> {
  const encoding = request.headers.get("content-encoding");
  if (encoding !== null && encoding.toLowerCase() !== "identity") {
    throw unsupported("Compressed bodies are not accepted.");
  }
  return await readBytes(request, limits.bodyBytes);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isJson(mediaType: string): boolean {
  try {
    const { essence, params } = new MIMEType(mediaType);
    return essence === "application/json" && (params.get("charset") ?? "utf-8").toLowerCase() === "utf-8";
  } catch {
    return false;
  }
}

async function readBytes(request: Request, limit: number): Promise<Uint8Array> {
  if (Number(request.headers.get("content-length")) > limit) throw tooLarge(limit);
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

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
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
