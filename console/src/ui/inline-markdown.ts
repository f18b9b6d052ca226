/** A piece of a line: plain, or with one of Markdown's marks. */
export interface InlinePiece {
  readonly kind: "text" | "strong" | "emphasis" | "code";
  readonly text: string;
}

// Each mark holds at most 400 characters, so that the time is linear.
const marks =
  /`([^`\n]{1,400})`|\*\*([^*\n]{1,400})\*\*|__([^_\n]{1,400})__|(?<![\w*])\*(?!\s)([^*\n]{1,400})(?<!\s)\*(?![\w*])|\[([^\]\n]{1,400})\]\([^)\n]{0,400}\)/g;

/** Splits the lines of a short text, such as a criterion, into pieces; marks of lists are left out. */
export function splitInline(text: string): readonly (readonly InlinePiece[])[] {
  return text
    .split("\n")
    .map((line) => line.replace(/^\s*(?:>\s*)?(?:(?:[-*+]|\d{1,4}[.)])\s+)?/, "").trimEnd())
    .filter((line) => line !== "")
    .map(splitLine);
}

function splitLine(line: string): readonly InlinePiece[] {
  const pieces: InlinePiece[] = [];
  let end = 0;
  for (const { index, 0: whole, 1: code, 2: stars, 3: lines, 4: star, 5: link } of line.matchAll(marks)) {
    if (index > end) pieces.push({ kind: "text", text: line.slice(end, index) });
    end = index + whole.length;
    const strong = stars ?? lines;
    if (code !== undefined) pieces.push({ kind: "code", text: code });
    else if (strong !== undefined) pieces.push({ kind: "strong", text: strong });
    else if (star !== undefined) pieces.push({ kind: "emphasis", text: star });
    else pieces.push({ kind: "text", text: link ?? "" });
  }
  if (end < line.length) pieces.push({ kind: "text", text: line.slice(end) });
  return pieces;
}

/** A short text without its marks, in one line. */
export function readPlain(text: string): string {
  return splitInline(text)
    .map((line) => line.map((piece) => piece.text).join(""))
    .join(" ");
}
