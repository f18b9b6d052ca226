import type { SpecBlock } from "../../protocol/spec-block.ts";
import { displayWidth, fromNow, pad, safeLine, safeLines, truncate, wrap } from "../text/safe-text.ts";
import type { Output, Style } from "./output.ts";

export interface Column<Row> {
  readonly header: string;
  /** The value of the record; the table makes it one safe line. */
  value(row: Row): string;
  /** Replaces the value on a terminal: `3 min ago` for a time. Where every row has "", the column is left out there. */
  forPeople?(row: Row): string;
  style?(row: Row): Style | undefined;
  readonly align?: "left" | "right";
  /** A text that may take several lines on a terminal. Other values, such as ids, stay whole on one line. */
  readonly wraps?: true;
  /** Where the row comes from. A terminal shows the path once, above the rows of a file. */
  place?(row: Row): Place | undefined;
  /** Only with `place`: keeps the order of the rows, and repeats a path where rows of another file come between. */
  readonly inOrder?: true;
}

interface Place {
  readonly path: string;
  readonly line?: number | undefined;
}

/** A column of `path:line`, by which a terminal groups the rows. */
export function placeColumn<Row>(place: (row: Row) => Place | undefined): Column<Row> {
  return {
    header: "WHERE",
    value: (row) => {
      const { path, line } = place(row) ?? { path: "" };
      return formatLocation(path, line);
    },
    forPeople: () => "",
    place,
  };
}

/** A column of ISO 8601 times, which a terminal shows as their distance from now. */
export function timeColumn<Row>(header: string, time: (row: Row) => string | undefined): Column<Row> {
  const value = (row: Row): string => time(row) ?? "";
  return { header, value, forPeople: (row) => fromNow(value(row)), style: () => "dim" };
}

/** Columns between two columns. */
const gap = 2;
/** The least width of a text that shares its line with other columns, unless it is shorter. */
const leastText = 24;
/** The most lines of a text: commands take ids and paths as arguments, not texts, so a text may be cut. */
const mostLines = 4;

/**
 * Prints rows. Into a pipe: one line per row, whole values separated by tabs, without headings, for `cut`, `awk` and
 * `grep`. On a terminal: aligned, with headings, and with texts wrapped; values that commands take as arguments are never
 * cut. Columns for which the line has no room stand below it, texts first.
 */
export function printTable<Row>(output: Output, rows: readonly Row[], columns: readonly Column<Row>[]): void {
  if (!output.isTerminal) {
    for (const row of rows) output.line(columns.map((column) => safeLine(column.value(row))).join("\t"));
    return;
  }
  const strips = columns.map((column) => createStrip(column, rows));
  // Empty columns are left out, to save room.
  const filled = strips.filter(({ cells }) => cells.some((cell) => cell !== ""));
  const groups = groupRows(rows, columns);
  const isGrouped = groups.some(({ path }) => path !== undefined);
  const indent = isGrouped ? gap : 0;
  const lines = rows.map((row) => columns.find(({ place }) => place !== undefined)?.place?.(row)?.line);
  const numbers = createStrip({ header: "LINE", value: lineText, align: "right", style: () => "dim" }, lines);
  const withLines = numbers.cells.some((cell) => cell !== "") ? [numbers, ...filled] : filled;
  if (withLines.length === 0 && !isGrouped) return;
  const layout = layOut(withLines, output.width - indent);
  if (layout.beside.some(({ header }) => header !== "")) printHeadings(output, layout, indent);
  for (const { path, indexes } of groups) {
    if (isGrouped) output.line(output.style("bold", safeLine(path ?? "")));
    for (const index of indexes) printRow(output, { layout, index, indent });
  }
}

function lineText(line: number | undefined): string {
  return line === undefined ? "" : String(line);
}

interface Group {
  readonly path: string | undefined;
  /** The places of its rows in the list of all rows. */
  readonly indexes: number[];
}

/** The rows by file, in the order in which the files occur; one group without a path where no column has a place. */
function groupRows<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): readonly Group[] {
  const column = columns.find(({ place }) => place !== undefined);
  const groups: Group[] = [];
  const byPath = new Map<string | undefined, Group>();
  for (const [index, row] of rows.entries()) {
    const path = column?.place?.(row)?.path;
    const group = column?.inOrder && groups.at(-1)?.path !== path ? undefined : byPath.get(path);
    if (group !== undefined) {
      group.indexes.push(index);
      continue;
    }
    const next = { path, indexes: [index] };
    byPath.set(path, next);
    groups.push(next);
  }
  return groups;
}

/** A column ready to print: its heading, and a cell per row. */
interface Strip {
  readonly header: string;
  readonly cells: readonly string[];
  readonly styles: readonly (Style | undefined)[];
  readonly align: "left" | "right" | undefined;
  readonly wraps: boolean;
  /** The width of the widest cell or the heading. */
  readonly width: number;
  /** The width without which it does not share a line. */
  readonly least: number;
}

function createStrip<Row>(column: Column<Row>, rows: readonly Row[]): Strip {
  const { header, style, align, wraps = false } = column;
  const cells = rows.map((row) => safeLine((column.forPeople ?? column.value)(row)));
  const width = widest(cells, header.length);
  return {
    header,
    cells,
    styles: rows.map((row) => style?.(row)),
    align,
    wraps,
    width,
    least: wraps
      ? Math.min(
          width,
          widest(
            cells.flatMap((cell) => cell.split(" ")),
            leastText,
          ),
        )
      : width,
  };
}

function widest(texts: readonly string[], least: number): number {
  return texts.reduce((most, text) => Math.max(most, displayWidth(text)), least);
}

/** The columns of a row's first line, with the width of each, and those below it. */
interface Layout {
  readonly beside: readonly Strip[];
  readonly widths: readonly number[];
  readonly below: readonly Strip[];
}

/** Moves the widest text below, then the last of the other columns, until the rest fits into the width. */
function layOut(strips: readonly Strip[], width: number): Layout {
  let beside = strips;
  while (beside.length > 1 && lineWidth(beside.map(({ least }) => least)) > width) {
    const texts = beside.filter(({ wraps }) => wraps);
    const most = Math.max(...texts.map((strip) => strip.width));
    const moved = texts.findLast((strip) => strip.width === most) ?? beside.at(-1);
    beside = beside.filter((strip) => strip !== moved);
  }
  return {
    beside,
    widths: fitWidths(beside, width),
    below: strips.filter((strip) => !beside.includes(strip)),
  };
}

function lineWidth(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, gap * (widths.length - 1));
}

/** Shrinks the widest columns first, until the line fits or all columns have their least width. */
export function fitWidths(
  wishes: readonly Pick<Strip, "width" | "least">[],
  available: number,
): readonly number[] {
  const widths = wishes.map(({ width }) => width);
  for (;;) {
    const excess = lineWidth(widths) - available;
    const open = [...widths.keys()].filter((index) => (widths[index] ?? 0) > (wishes[index]?.least ?? 0));
    if (excess <= 0 || open.length === 0) return widths;
    const most = Math.max(...open.map((index) => widths[index] ?? 0));
    const group = open.filter((index) => widths[index] === most);
    // One column at a time: a terminal is narrow, so this ends soon.
    for (const index of group.slice(0, excess)) widths[index] = most - 1;
  }
}

function printHeadings(output: Output, { beside, widths }: Layout, indent: number): void {
  const cells = beside.map(({ header, align }) => ({ lines: [header], align, style: "dim" as const }));
  printLines(output, { cells, widths, indent });
}

function printRow(
  output: Output,
  { layout, index, indent }: { readonly layout: Layout; readonly index: number; readonly indent: number },
): void {
  const { beside, widths, below } = layout;
  const cells = beside.map((strip, at) => cellAt(strip, index, widths[at] ?? 0));
  printLines(output, { cells, widths, indent });
  // Below a line number, so that the numbers stand out.
  const first = beside[0]?.header === "LINE" && beside.length > 1 ? (widths[0] ?? 0) : 0;
  const deeper = indent + first + gap;
  for (const strip of below) {
    const width = output.width - deeper;
    const cell = cellAt({ ...strip, align: "left" }, index, width);
    if (strip.cells[index] !== "") printLines(output, { cells: [cell], widths: [width], indent: deeper });
  }
}

interface Cell {
  readonly lines: readonly string[];
  readonly align: "left" | "right" | undefined;
  readonly style: Style | undefined;
}

function cellAt({ cells, styles, align, wraps }: Strip, index: number, width: number): Cell {
  const text = cells[index] ?? "";
  const lines = wraps ? limitLines(wrap(text, width), width) : [text];
  return { lines, align, style: styles[index] };
}

function limitLines(lines: readonly string[], width: number): readonly string[] {
  if (lines.length <= mostLines) return lines;
  return [...lines.slice(0, mostLines - 1), truncate(lines.slice(mostLines - 1).join(" "), width)];
}

/** Prints cells side by side, over as many lines as the tallest has. */
function printLines(
  output: Output,
  {
    cells,
    widths,
    indent,
  }: {
    readonly cells: readonly Cell[];
    readonly widths: readonly number[];
    readonly indent: number;
  },
): void {
  const height = Math.max(...cells.map(({ lines }) => lines.length));
  for (let at = 0; at < height; at += 1) {
    const last = cells.findLastIndex(({ lines }) => (lines[at] ?? "") !== "");
    const printed = cells.slice(0, last + 1).map(({ lines, align, style }, index) => {
      const text = lines[at] ?? "";
      const padded = index === last && align !== "right" ? text : pad(text, widths[index] ?? 0, align);
      return style === undefined || text === "" ? padded : output.style(style, padded);
    });
    output.line(`${" ".repeat(indent)}${printed.join(" ".repeat(gap))}`);
  }
}

/** A label and its value: nothing, one line, or several lines. */
type Field = readonly [name: string, value: string | readonly string[] | undefined];

/** Columns of the names. */
const nameWidth = 12;

/** Prints the fields of one record below each other, without empty ones. */
export function printFields(output: Output, fields: readonly Field[]): void {
  for (const [name, value = ""] of fields) {
    const lines = (typeof value === "string" ? [value] : value).filter((line) => line !== "");
    for (const [index, line] of lines.entries()) {
      output.line(`${output.style("dim", (index === 0 ? name : "").padEnd(nameWidth))}${safeLine(line)}`);
    }
  }
}

/** Prints a whole file: unchanged into a pipe or a file, without control characters on a terminal. */
export function printDocument(output: Output, content: string): void {
  const text = output.isTerminal ? safeLines(content) : content;
  output.write(output.isTerminal && !text.endsWith("\n") ? `${text}\n` : text);
}

/** The most losses to print; `--json` has all of them. */
const mostLosses = 20;

/** Prints what a target format could not hold. */
export function noteLosses(output: Output, losses: readonly string[]): void {
  for (const loss of losses.slice(0, mostLosses)) {
    output.note(`${output.noteStyle("yellow", "lost:")} ${safeLine(loss)}`);
  }
  if (losses.length > mostLosses)
    output.note(`… and ${count(losses.length - mostLosses, "more loss", "more losses")}.`);
}

/** `path:line`, which terminals and editors open. */
export function formatLocation(path: string, line: number | undefined, column?: number): string {
  if (line === undefined) return path;
  return column === undefined ? `${path}:${line}` : `${path}:${line}:${column}`;
}

/** The file and line that a spec begins at. */
export function specPlace({ path, metadata }: SpecBlock): Place {
  return { path, line: metadata.source?.start_line };
}

/** "1 spec", "2,000 specs". */
export function count(number: number, noun: string, plural: string = `${noun}s`): string {
  // The first use of a locale takes longer than all else that a short list needs.
  const digits = number < 1000 ? String(number) : number.toLocaleString("en");
  return `${digits} ${number === 1 ? noun : plural}`;
}
