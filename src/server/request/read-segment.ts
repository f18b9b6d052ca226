import { KitError } from "../../base/kit-error.ts";

/** The longest name or id in a path, in bytes of UTF-8. */
export const maxSegmentBytes = 128;

/**
 * A name or id out of a URL path: one segment, percent-decoded once.
 *
 * Throws `invalid_request` for text that is not UTF-8, is empty or longer than `maxBytes`, or holds a
 * separator, a control character, or nothing but a dot segment.
 */
export function readSegment(raw: string, options: { name: string; maxBytes?: number }): string {
  const maxBytes = options.maxBytes ?? maxSegmentBytes;
  const text = decode(raw);
  if (text === undefined) throw invalidSegment(options.name, "must be percent-encoded UTF-8");
  if (text === "") throw invalidSegment(options.name, "must not be empty");
  if (Buffer.byteLength(text) > maxBytes) {
    throw invalidSegment(options.name, `must have at most ${maxBytes} bytes`);
  }
  if (text === "." || text === ".." || /[/\\\p{Cc}]/u.test(text)) {
    throw invalidSegment(options.name, "must not hold separators, dot segments or control characters");
  }
  return text;
}

function decode(raw: string): string | undefined {
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
