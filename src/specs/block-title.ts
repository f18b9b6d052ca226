/** Longer texts are cut at a word; tables and graphs stay readable. */
const maxLength = 120;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a title
const space = /[\s\u0000-\u001f\u007f-\u009f]+/g;
const marker = /^(?:\s|(?:[#>*+-]+|\d{1,9}[.)])\s)*/;

/**
 * The first line of a text that has a letter or digit, as a title: without list, heading and quote
 * markers, white space joined, at most 120 UTF-16 units. Empty when no line has one.
 */
export function blockTitle(text: string): string {
  for (const line of text.matchAll(/[^\r\n]+/g)) {
    const words = line[0]
      .slice(0, 8 * maxLength)
      .replace(marker, "")
      .replace(space, " ");
    if (/[\p{L}\p{N}]/u.test(words)) return cut(words.trim());
  }
  return "";
}

/** Cuts a text at a word boundary, with an ellipsis. */
function cut(text: string): string {
  if (text.length <= maxLength) return text;
  const head = text.slice(0, maxLength - 1).replace(/[\ud800-\udbff]$/, "");
  const word = head.lastIndexOf(" ");
  return `${word > maxLength / 2 ? head.slice(0, word) : head}…`;
}
