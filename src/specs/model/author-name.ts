const maxLength = 100;

/**
 * Cleans the name of an author from a commit or a file, whose text is not trusted: one line without e-mail addresses and invisible
 * characters, at most 100 characters long. Undefined when that leaves no visible character.
 */
export function toAuthorName(text: string): string | undefined {
  const name = text
    .slice(0, 10 * maxLength)
    .replace(/\p{Cc}/gu, " ")
    // Two joiners are part of how some scripts are written; other marks of format reorder or hide text.
    .replace(/(?![\u200c\u200d])[\p{Cf}\p{Cs}]/gu, "")
    .replace(/[^\s@]+@[^\s@]+/g, " ")
    .replace(/\s+/g, " ")
    .trim();
  if (!/[^\s\p{Default_Ignorable_Code_Point}]/u.test(name)) return undefined;
  const characters = [...name];
  return characters.length <= maxLength ? name : `${characters.slice(0, maxLength - 1).join("")}…`;
}

/**
 * The author that a file names as `author` or `authors`, at the top or in `metadata`: a text, a
 * list of them, or an object with a `name`.
 */
export function statedAuthor(data: Readonly<Record<string, unknown>>): string | undefined {
  for (const [key, value] of Object.entries(data)) {
    const name = /^authors?$/i.test(key) ? toAuthorName(namesIn(value).join(", ")) : undefined;
    if (name !== undefined) return name;
  }
  const { metadata } = data;
  return isRecord(metadata) ? statedAuthor({ ...metadata, metadata: undefined }) : undefined;
}

function namesIn(value: unknown): string[] {
  if (typeof value === "string") return value.trim() === "" ? [] : [value];
  if (Array.isArray(value))
    return value.slice(0, 20).flatMap((item) => (Array.isArray(item) ? [] : namesIn(item)));
  return isRecord(value) && typeof value.name === "string" ? namesIn(value.name) : [];
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
