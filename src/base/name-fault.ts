/** The longest name or id, in bytes of UTF-8. */
export const maxNameBytes = 128;

/** Invisible marks that turn the direction of text or break a line: one name shows as another. */
const unseen = /[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/;

/**
 * The fault of a text as a name or id of one path segment: empty, too long, half a character, or holding a
 * separator, a control character, a mark of text direction, or nothing but a dot segment.
 */
export function faultOfName(text: string, maxBytes: number = maxNameBytes): string | undefined {
  if (text === "") return "must not be empty";
  // JSON can say half of a surrogate pair; stores and URLs cannot, and would take one name for another.
  if (!text.isWellFormed()) return "must be well-formed Unicode";
  // A UTF-16 unit is at most three bytes: only long names have to be counted.
  if (text.length * 3 > maxBytes && new TextEncoder().encode(text).length > maxBytes)
    return `must have at most ${maxBytes} bytes`;
  if (text === "." || text === ".." || /[/\\\p{Cc}]/u.test(text))
    return "must not hold separators, dot segments or control characters";
  if (unseen.test(text)) return "must not hold marks of text direction";
  return undefined;
}

/**
 * The same, more strictly, for a name that a project defines: of an agent, a workflow, a webhook, a skill or
 * a role. Such a name is typed, compared, put into addresses and shown to models.
 */
export function faultOfDefinedName(text: string): string | undefined {
  const fault = faultOfName(text);
  if (fault !== undefined) return fault;
  if (/^[\p{L}\p{N}][\p{L}\p{M}\p{N} ._-]*$/u.test(text) && !text.endsWith(" ")) return undefined;
  return "must begin with a letter or a digit, and hold only letters, digits, spaces, ., _ and -";
}

/** Equal for names that a reader, or a disk, may take for one: `Review` and `review`. */
export function nameKey(name: string): string {
  return name.normalize("NFKC").toLowerCase();
}

/** A name for a message: what a terminal or a log would obey is spelled out, and a long one is cut. */
export function quoteName(name: string): string {
  const short = name.length > 80 ? `${name.slice(0, 80)}…` : name;
  return JSON.stringify(short).replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
