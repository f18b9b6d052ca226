import { columnsBefore, isBlankLine, withoutColumns } from "./characters.ts";
import { lineKinds, lineText, type MarkdownScan } from "./scan-markdown.ts";

/** A list marker with the white space around it: bullets and numbers. */
export const listMarker: RegExp = /^[ \t]*(?:[-*+]|(\d{1,9})[.)])(?:[ \t]+|$)/;

/**
 * The last line of the list item that starts on `line`, at most `limit`: with its paragraphs, nested
 * lists and code, without the blank lines behind it. Linear in the lines of the item.
 */
export function listItemEnd(scan: MarkdownScan, line: number, limit: number): number {
  const indent = columnsBefore(lineText(scan, line));
  let end = line;
  for (let at = line + 1; at <= limit; at += 1) {
    const text = lineText(scan, at);
    const kind = scan.kinds[at - 1];
    if (kind === lineKinds.prose && isBlankLine(text)) continue;
    const followsGap = at > end + 1;
    const isNested = columnsBefore(text) >= indent + 2;
    if (kind !== lineKinds.prose) {
      if (followsGap && !isNested) return end;
      while (at < limit && scan.kinds[at] === kind) at += 1;
    } else if (!isNested && (followsGap || listMarker.test(text) || cannotContinue(text))) {
      return end;
    }
    end = at;
  }
  return end;
}

/**
 * The text of a list item from line `from` to `to`, without its marker and indent, joined by line
 * feeds. Writing it behind another marker and indenting the rest gives the same text back.
 */
export function listItemText(scan: MarkdownScan, from: number, to: number): string {
  const first = lineText(scan, from);
  const marker = listMarker.exec(first)?.[0] ?? "";
  const lines = [first.slice(marker.length)];
  const width = columnsBefore(first) + markerWidth(marker);
  for (let line = from + 1; line <= to; line += 1) {
    const text = lineText(scan, line);
    lines.push(isBlankLine(text) ? "" : withoutColumns(text, width));
  }
  return lines.join("\n").trim();
}

/** The distance between bullet and text of an item, in columns; behind a bare bullet, one. */
export function markerWidth(marker: string): number {
  return Math.max(marker.trimStart().length, marker.trim().length + 1);
}

/** Lines that would make headings less than four columns from the margin, and HTML that ends there. */
const headings = /\n[ \t]*[=\-#]/;
const html = /(?:^|\n) {0,3}</;

/**
 * A text as a list item: its first line behind the marker, the others indented as far. Code and HTML
 * stand below the marker, because behind it they would be text.
 */
export function toListItem(marker: string, text: string): string {
  const [first = "", ...rest] = text.split("\n");
  if (/^(?:```|~~~|<)/.test(first)) return [marker, ...indented([first, ...rest], 2)].join("\n");
  const width = headings.test(text) && !html.test(text) ? 4 : 2;
  return [`${marker.padEnd(width - 1)} ${first}`, ...indented(rest, width)].join("\n");
}

function indented(lines: readonly string[], width: number): string[] {
  return lines.map((line) => (line === "" ? "" : `${" ".repeat(width)}${line}`));
}

function cannotContinue(text: string): boolean {
  return /^[ \t]*(?:#{1,6}(?:[ \t]|$)|(?:-[ \t]*){3,}$|(?:\*[ \t]*){3,}$|(?:_[ \t]*){3,}$)/.test(text);
}
