import { isRecord } from "../../base/record.ts";

/** Longer texts are cut at a word; tables and graphs stay readable. */
const maxLength = 120;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a title
const controls = /[\u0000-\u001f\u007f-\u009f]/g;
const marker = /^(?:\s|(?:[#>*+-]+|\d{1,9}[.)])\s)*/;

/** Lines that end a paragraph: a list item, a heading, a fence, a quote, a table row. */
const paragraphEnd = /^[ \t]*(?:[-*+>|][ \t]|\d{1,9}[.)][ \t]|#|```|~~~)/;
/** The limit of lines that are searched for a title. */
const maxLines = 40;

/**
 * The first paragraph of a text with a letter or digit, as a title: without list, heading and quote markers, white space joined,
 * at most 120 UTF-16 units. Empty if there is no such paragraph.
 */
export function blockTitle(text: string): string {
  let title = "";
  let isHeading = false;
  for (const line of text.slice(0, maxLines * maxLength).split(/\r\n|\n|\r/, maxLines)) {
    const isOpen = title !== "";
    if (isOpen && (isHeading || title.length > maxLength || line.trim() === "" || paragraphEnd.test(line)))
      break;
    const words = joinSpace(
      line
        .slice(0, 4 * maxLength)
        .replace(marker, "")
        .replace(controls, " "),
    );
    if (isOpen) title += ` ${words}`;
    else if (/[\p{L}\p{N}]/u.test(words)) {
      title = words;
      isHeading = /^\s*#/.test(line);
    }
  }
  return cut(title);
}

/** Cuts a text at a word boundary, with an ellipsis. */
function cut(text: string): string {
  if (text.length <= maxLength) return text;
  const head = text.slice(0, maxLength - 1).replace(/[\ud800-\udbff]$/, "");
  const word = head.lastIndexOf(" ");
  return `${word > maxLength / 2 ? head.slice(0, word) : head}…`;
}

/** A text in one line: white space joined, none at its ends. Fast for a text with single spaces. */
export function joinSpace(text: string): string {
  return text.replace(/\s{2,}|[^\S ]/g, " ").trim();
}

/** The longest slug; ids stay readable and file names legal. */
const maxSlugLength = 60;

/**
 * Converts a text to a part of an id or file name: lower case, words joined by hyphens, letters and digits of any script, at most
 * `maxSlugLength` UTF-16 units. Empty when the text has no letter or digit.
 *
 * @example
 * ```ts
 * import { slugOf } from "kit/specs";
 *
 * console.log(slugOf("Refunds & returns")); // refunds-returns
 * ```
 */
export function slugOf(text: string): string {
  const words =
    text
      .normalize("NFKC")
      .toLowerCase()
      .slice(0, 4 * maxSlugLength)
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  return words
    .join("-")
    .slice(0, maxSlugLength)
    .replace(/[-\ud800-\udbff]+$/u, "");
}

const maxAuthorLength = 100;

/**
 * Cleans the name of an author from a commit or a file, whose text is not trusted: one line without e-mail addresses and invisible
 * characters, at most 100 characters long. Undefined when that leaves no visible character.
 */
export function toAuthorName(text: string): string | undefined {
  const name = text
    .slice(0, 10 * maxAuthorLength)
    .replace(/\p{Cc}/gu, " ")
    // Two joiners are part of how some scripts are written; other marks of format reorder or hide text.
    .replace(/(?![\u200c\u200d])[\p{Cf}\p{Cs}]/gu, "")
    .replace(/[^\s@]+@[^\s@]+/g, " ")
    .replace(/\s+/g, " ")
    .trim();
  if (!/[^\s\p{Default_Ignorable_Code_Point}]/u.test(name)) return undefined;
  const characters = [...name];
  return characters.length <= maxAuthorLength
    ? name
    : `${characters.slice(0, maxAuthorLength - 1).join("")}…`;
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
