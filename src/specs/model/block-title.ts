/** Longer texts are cut at a word; tables and graphs stay readable. */
const maxLength = 120;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a title
const controls = /[\u0000-\u001f\u007f-\u009f]/g;
const marker = /^(?:\s|(?:[#>*+-]+|\d{1,9}[.)])\s)*/;

/** Lines that end a paragraph: a list item, a heading, a fence, a quote, a table row. */
const paragraphEnd = /^[ \t]*(?:[-*+>|][ \t]|\d{1,9}[.)][ \t]|#|```|~~~)/;
/** The lines that are searched for a title at most. */
const maxLines = 40;

/**
 * The first paragraph of a text that has a letter or digit, as a title: without list, heading and
 * quote markers, white space joined, at most 120 UTF-16 units. Empty when there is none.
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

/** A text in one line: white space joined, none at its ends. Single spaces cost nothing. */
export function joinSpace(text: string): string {
  return text.replace(/\s{2,}|[^\S ]/g, " ").trim();
}
