import type { TaskStatus } from "../../protocol/spec-block.ts";
import { columnsBefore, withoutColumns } from "../markdown/characters.ts";
import { lineKinds, lineText, type MarkdownScan } from "../markdown/scan-markdown.ts";
import { headingsBetween } from "../markdown/segments.ts";

/** Lines of the file, 1-based, inclusive. */
export interface LineRange {
  readonly from: number;
  readonly to: number;
}

/** A checkbox item of a Markdown list. */
export interface TaskItem {
  readonly line: number;
  /** Columns before the bullet; a tab goes to the next multiple of four. -1 for a heading. */
  readonly indent: number;
  /** The character in the box: " ", "x", "X", "-", "~" or whatever the author wrote. */
  readonly state: string;
  /** Whether a star follows the box, Kiro's mark of an optional task. */
  readonly optional: boolean;
  /** The text after the box, on its line. */
  readonly text: string;
  /** Index of the item that contains this one. */
  readonly parent: number | undefined;
  /** The item's own lines below the first: its paragraphs, bullets and fences, not its subtasks. */
  readonly details: readonly LineRange[];
}

const box = /^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[([^[\]])\](\*?)(?![([:])(.*)$/s;
/** The indent of an item that is a heading: all lines below it are inside. */
const outermost = -1;

/** Lines that cannot continue a paragraph: a list item, a thematic break, a quote, a table row. */
const notLazy = /^(?:(?:[-*+]|\d{1,9}[.)])[ \t]|[-*_]{3,}[ \t]*$|[>|])/;
/** A label in italics, such as `_Requirements: 1.1_`: its indent alone decides to which task it belongs. */
const labelLine = /^(?:[-*+][ \t]+)?[_*]{1,3}[^_*\s][^:：]{0,60}[:：]/;

/**
 * The checkbox items of lines `fromLine` to `toLine`, in order, each with its own detail lines.
 *
 * An item ends at a heading and where the text returns to its indent or left of it. A heading may be
 * an item itself (`#### - [ ] 1.1 Title`), with all that is below it. Linear in the text, however deep
 * the nesting.
 *
 * @example
 * ```ts
 * import { scanMarkdown, taskItemsIn } from "kit/specs";
 *
 * const scan = scanMarkdown("- [x] 1. Pay\n- [ ] 2. Ship\n");
 * console.log(taskItemsIn(scan, 1, scan.lineCount).length); // 2
 * ```
 */
export function taskItemsIn(scan: MarkdownScan, fromLine: number, toLine: number): TaskItem[] {
  const items: OpenItem[] = [];
  /** Indices of the items that are still open, outermost first. */
  const open: number[] = [];
  const last = Math.min(toLine, scan.lineCount);
  const headings = new Map(headingsBetween(scan, fromLine, last).map((heading) => [heading.line, heading]));
  // The last line that is not blank, to tell whether blank lines lie within one item's details.
  let previous = fromLine - 1;
  for (let line = fromLine; line <= last; line += 1) {
    const heading = headings.get(line);
    if (heading !== undefined) {
      open.length = 0;
      const match = box.exec(heading.title);
      if (match !== null)
        open.push(items.push(toItem(match, { line, indent: outermost, parent: undefined })) - 1);
      line = heading.end_line;
      previous = line;
      continue;
    }
    const text = lineText(scan, line);
    const isProse = scan.kinds[line - 1] === lineKinds.prose;
    if (isProse && text.trim() === "") continue;
    const indent = columnsBefore(text);
    const match = isProse ? box.exec(text) : null;
    if (match !== null) {
      closeTo(items, open, indent);
      open.push(items.push(toItem(match, { line, indent, parent: open.at(-1) })) - 1);
      previous = line;
    } else {
      const end = isProse ? line : endOfRun(scan, line, last);
      const body = text.slice(text.length - text.trimStart().length);
      const isLabel = isProse && labelLine.test(body);
      const isLazy = isProse && previous === line - 1 && !notLazy.test(body) && !isLabel;
      if (isLabel) closeToLabel(items, open, indent);
      else if (!isLazy) closeTo(items, open, indent);
      addDetail(items[open.at(-1) ?? -1], { from: line, to: end }, previous);
      line = end;
      previous = line;
    }
  }
  return items;
}

/** The detail lines of an item without their common indent, joined by line feeds; "" without any. */
export function detailText(scan: MarkdownScan, item: Pick<TaskItem, "details">): string {
  const lines: string[] = [];
  for (const { from, to } of item.details) {
    for (let line = from; line <= to; line += 1) lines.push(lineText(scan, line).trimEnd());
  }
  const indents = lines.filter((line) => line !== "").map(columnsBefore);
  const common = indents.reduce((least, indent) => Math.min(least, indent), Number.POSITIVE_INFINITY);
  return lines.map((line) => withoutColumns(line, common)).join("\n");
}

interface OpenItem extends TaskItem {
  readonly details: { from: number; to: number }[];
}

function toItem(
  match: RegExpExecArray,
  place: { line: number; indent: number; parent: number | undefined },
): OpenItem {
  return {
    ...place,
    state: match[1] ?? " ",
    optional: match[2] === "*",
    text: (match[3] ?? "").trim(),
    details: [],
  };
}

function closeTo(items: readonly OpenItem[], open: number[], indent: number): void {
  while (open.length > 0 && (items[open.at(-1) ?? -1]?.indent ?? 0) >= indent) open.pop();
}

/**
 * A label belongs to the task that it is indented below; without one, to the task that it is level
 * with, else to the one above it.
 */
function closeToLabel(items: readonly OpenItem[], open: number[], indent: number): void {
  const indentOf = (index: number): number => items[index]?.indent ?? 0;
  const inside = open.findLastIndex((index) => indentOf(index) < indent);
  const level = inside === -1 ? open.findLastIndex((index) => indentOf(index) <= indent) : inside;
  if (level !== -1) open.length = level + 1;
}

/** Blank lines between two detail lines belong to the item when nothing else lies between them. */
function addDetail(item: OpenItem | undefined, lines: LineRange, previous: number): void {
  if (item === undefined) return;
  const range = item.details.at(-1);
  if (range?.to === previous) range.to = lines.to;
  else item.details.push({ ...lines });
}

function endOfRun(scan: MarkdownScan, line: number, last: number): number {
  const kind = scan.kinds[line - 1];
  let end = line;
  while (end < last && scan.kinds[end] === kind) end += 1;
  return end;
}

/** The status of a checkbox character. Unknown characters mean open. */
export function taskStatusOf(state: string): TaskStatus {
  if (/^[xX✓✔√☑]$/u.test(state)) return "done";
  return state === "-" || state === "/" ? "in_progress" : "open";
}

/** The list marker and checkbox of a task with a status. */
export function taskMarker(status: unknown): string {
  return status === "done" ? "- [x]" : status === "in_progress" ? "- [-]" : "- [ ]";
}
