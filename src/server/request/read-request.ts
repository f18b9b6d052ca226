import { keyOfSender } from "../../app/service/session-input.ts";
import { KitError } from "../../base/kit-error.ts";
import { faultOfName } from "../../base/name-fault.ts";
import type { Principal } from "../../protocol/access.ts";
import type { ErrorIssue } from "../../protocol/errors.ts";

interface SenderHead {
  readonly principal: Principal | undefined;
  header(name: string): string | undefined;
}

/**
 * The `Idempotency-Key` of a request, as its sender's own: the same work, asked for again by the same principal under
 * the same key, is done once. Throws `invalid_request` unless it has 1 to 128 printable ASCII characters.
 */
export function readIdempotencyKey({ header, principal }: SenderHead): string | undefined {
  const key = header("idempotency-key");
  if (key === undefined) return undefined;
  if (/^[\x20-\x7e]{1,128}$/.test(key)) return keyOfSender(principal, key);
  throw invalidHeader("idempotency-key", "must have 1 to 128 printable ASCII characters");
}

/**
 * The index of the event after which a stream goes on: `Last-Event-ID`, which a browser sends when it
 * connects again, before `after` of the query, which it repeats. Throws `invalid_request`.
 */
export function readEventPosition(
  { header }: Pick<SenderHead, "header">,
  query: { readonly after?: number | "now" | undefined },
): number | "now" | undefined {
  const id = header("last-event-id");
  if (id === undefined || id === "") return query.after;
  if (/^\d{1,15}$/.test(id)) return Number(id);
  throw invalidHeader("last-event-id", "must be the id of an event of this stream");
}

/** Whether a stream is asked for by who has had a part of it: a browser says so whenever it connects again. */
export function isReconnect({ header }: Pick<SenderHead, "header">): boolean {
  return (header("last-event-id") ?? "") !== "";
}

function invalidHeader(name: string, message: string): KitError {
  return new KitError({
    code: "invalid_request",
    message: "A header is not valid.",
    meta: { issues: [{ path: `headers.${name}`, message }] },
  });
}

/**
 * The query of a URL, each parameter once. An empty value counts as absent, as forms send it.
 *
 * Throws `invalid_request` for text that is not percent-encoded UTF-8 and for a repeated parameter.
 */
export function readQuery(url: string): Record<string, unknown> {
  const query: Record<string, unknown> = Object.create(null);
  const start = url.indexOf("?");
  if (start === -1) return query;
  for (const pair of url.slice(start + 1).split("&")) {
    const equals = pair.indexOf("=");
    const name = decode(equals === -1 ? pair : pair.slice(0, equals));
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
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}

function invalidQuery(issue: ErrorIssue): KitError {
  return new KitError({
    code: "invalid_request",
    message: "The query is not valid.",
    meta: { issues: [issue] },
  });
}

/**
 * A name or id out of a URL path: one segment, percent-decoded once.
 *
 * Throws `invalid_request` for text that is not UTF-8, is empty or longer than `maxBytes` (128), or
 * holds a separator, a control character, or nothing but a dot segment.
 */
export function readSegment(raw: string, options: { name: string; maxBytes?: number }): string {
  const text = decodeSegment(raw);
  const fault = text === undefined ? "must be percent-encoded UTF-8" : faultOfName(text, options.maxBytes);
  if (text !== undefined && fault === undefined) return text;
  throw invalidSegment(options.name, fault ?? "");
}

function decodeSegment(raw: string): string | undefined {
  // Most names have nothing to decode.
  if (!raw.includes("%")) return raw;
  try {
    return decodeURIComponent(raw);
  } catch {
    return undefined;
  }
}

/** The error for a path segment that cannot be a name or id. */
export function invalidSegment(name: string, message: string): KitError {
  return new KitError({
    code: "invalid_request",
    message: "The path is not valid.",
    meta: { issues: [{ path: `path.${name}`, message }] },
  });
}
