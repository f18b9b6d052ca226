import { KitError } from "../../base/kit-error.ts";
import { faultOfName } from "../../base/name-fault.ts";

/**
 * A name or id out of a URL path: one segment, percent-decoded once.
 *
 * Throws `invalid_request` for text that is not UTF-8, is empty or longer than `maxBytes` (128), or
 * holds a separator, a control character, or nothing but a dot segment.
 */
export function readSegment(raw: string, options: { name: string; maxBytes?: number }): string {
  const text = decode(raw);
  const fault = text === undefined ? "must be percent-encoded UTF-8" : faultOfName(text, options.maxBytes);
  if (text !== undefined && fault === undefined) return text;
  throw invalidSegment(options.name, fault ?? "");
}

function decode(raw: string): string | undefined {
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
