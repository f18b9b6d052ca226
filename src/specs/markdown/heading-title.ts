/** Titles are cut here, so that ids, file names and tables stay small whatever a file holds. */
export const maxTitleLength = 300;

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a title
const controlCharacters = /[\u0000-\u001f\u007f-\u009f]+/g;

/** A text as a title: one line, without control characters, at most `maxTitleLength` long. */
export function toTitle(text: string): string {
  const clean = text
    .slice(0, 4 * maxTitleLength)
    .replace(controlCharacters, " ")
    .trim();
  if (clean.length <= maxTitleLength) return clean;
  return `${clean.slice(0, maxTitleLength - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}

/** The text of an ATX heading without its closing sequence (`## A ##`). */
export function withoutClosing(text: string): string {
  const trimmed = text.trimEnd();
  let at = trimmed.length;
  while (at > 0 && trimmed[at - 1] === "#") at -= 1;
  if (at === trimmed.length) return trimmed;
  return at === 0 || trimmed[at - 1] === " " || trimmed[at - 1] === "\t" ? trimmed.slice(0, at) : trimmed;
}
