import type { SpecBlock } from "../../protocol/spec-block.ts";
import { type Cut, displayWidth, pad, safeLine, safeLines, truncate } from "../text/safe-text.ts";
import type { Output, Style } from "./output.ts";

export interface Column<Row> {
  readonly header: string;
  /** The value of the record; the table makes it one safe line. */
  value(row: Row): string;
  /** Replaces the value on a terminal: `3 min ago` for a time. */
  forPeople?(row: Row): string;
  style?(row: Row): Style | undefined;
  readonly align?: "left" | "right";
  /** Which end to cut when the terminal is too narrow; without it, values stay whole. */
  readonly cut?: Cut;
  /** Columns that it keeps before each row takes two lines; default 16. */
  readonly least?: number;
  /** Shrinks before paths and texts do: commands accept the remaining part of an id (`matchId`). */
  readonly isId?: true;
}

/** Columns between two columns. */
const gap = 2;
/** The least width of a cut column, ids included. */
const leastWidth = 12;
/** The least width of a text or path that shares its line with others. */
const leastText = 16;

/**
 * Prints rows: for a terminal with headings, aligned and cut to its width; otherwise one line per row, whole values
 * separated by tabs, without headings, for `cut`, `awk` and `grep`. If texts and paths would be cut to less than 16
 * columns, they get a line of their own with the rest below it.
 */
export function printTable<Row>(output: Output, rows: readonly Row[], columns: readonly Column<Row>[]): void {
  const strips = columns.map((column) => toStrip(column, rows, output.isTerminal));
  if (!output.isTerminal) {
    for (const index of rows.keys()) output.line(strips.map(({ cells }) => cells[index]).join("\t"));
    return;
  }
  // Empty columns are left out, to save room.
  const filled = strips.filter(({ cells }) => cells.some((cell) => cell !== ""));
  if (filled.length === 0) return;
  const widths = fitWidths(filled, output.width);
  if (
    lineWidth(widths) <= output.width &&
    filled.every((strip, index) => isReadable(strip, widths[index] ?? 0))
  ) {
    const heading = filled.map(({ header, align }) => ({ text: header, align, style: "dim" as const }));
    output.line(toLine(output, heading, widths));
    for (const index of rows.keys()) output.line(toLine(output, filled.map(cellOf(index)), widths));
    return;
  }
  const texts = filled.filter(isText);
  const otherStrips = filled.filter((strip) => !isText(strip));
  const [above, below] = texts.length === 0 || otherStrips.length === 0 ? [filled, []] : [texts, otherStrips];
  const aboveWidths = fitWidths(above, output.width);
  const belowWidths = fitWidths(below, output.width - gap);
  for (const index of rows.keys()) {
    output.line(toLine(output, above.map(cellOf(index)), aboveWidths));
    if (below.length > 0)
      output.line(" ".repeat(gap) + toLine(output, below.map(cellOf(index)), belowWidths));
  }
}

function isText({ cut, isId }: Strip): boolean {
  return cut !== undefined && !isId;
}

function isReadable(strip: Strip, width: number): boolean {
  return !isText(strip) || width >= Math.min(strip.width, strip.least);
}

/** A column ready to print: its heading, and a cell per row. */
interface Strip {
  readonly header: string;
  readonly cells: readonly string[];
  readonly styles: readonly (Style | undefined)[];
  readonly align: "left" | "right" | undefined;
  readonly cut: Cut | undefined;
  readonly least: number;
  readonly isId: boolean;
  /** The width of the widest cell or the heading. */
  readonly width: number;
}

function toStrip<Row>(column: Column<Row>, rows: readonly Row[], isTerminal: boolean): Strip {
  const { header, style, align, least = leastText, isId = false } = column;
  const textOf = (row: Row): string =>
    isTerminal && column.forPeople ? column.forPeople(row) : column.value(row);
  const cells = rows.map((row) => safeLine(textOf(row)));
  return {
    header,
    cells,
    styles: rows.map((row) => style?.(row)),
    align,
    least,
    cut: column.cut ?? (isId ? "start" : undefined),
    isId,
    width: cells.reduce((most, cell) => Math.max(most, displayWidth(cell)), header.length),
  };
}

interface Cell {
  readonly text: string;
  readonly align: "left" | "right" | undefined;
  readonly cut?: Cut | undefined;
  readonly style: Style | undefined;
}

function cellOf(index: number): (strip: Strip) => Cell {
  return ({ cells, styles, align, cut }) => ({ text: cells[index] ?? "", align, cut, style: styles[index] });
}

function toLine(output: Output, cells: readonly Cell[], widths: readonly number[]): string {
  const printed = cells.map(({ text, align, cut, style }, index) => {
    const width = widths[index] ?? 0;
    const short = cut === undefined ? text : truncate(text, width, cut);
    const isLast = index === cells.length - 1;
    const padded = isLast && align !== "right" ? short : pad(short, width, align);
    return style === undefined ? padded : output.style(style, padded);
  });
  return printed.join(" ".repeat(gap));
}

function lineWidth(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, gap * (widths.length - 1));
}

interface Wish {
  readonly width: number;
  readonly cut?: Cut | undefined;
  readonly isId?: boolean;
}

/**
 * Shrinks id columns first, then the widest text columns, until the line fits or all columns have their least width.
 */
export function fitWidths(wishes: readonly Wish[], available: number): readonly number[] {
  const widths = wishes.map((wish) => wish.width);
  for (const isRequired of [true, false]) {
    const indexes = [...wishes.keys()].filter(
      (index) => wishes[index]?.cut !== undefined && (wishes[index]?.isId ?? false) === isRequired,
    );
    shrink(widths, indexes, available);
  }
  return widths;
}

function shrink(widths: number[], indexes: readonly number[], available: number): void {
  for (let excess = lineWidth(widths) - available; excess > 0; excess = lineWidth(widths) - available) {
    const sizes = indexes.map((index) => widths[index] ?? 0).filter((size) => size > leastWidth);
    if (sizes.length === 0) return;
    const widest = Math.max(...sizes);
    const group = indexes.filter((index) => widths[index] === widest);
    const next = Math.max(leastWidth, ...sizes.filter((size) => size < widest));
    const step = Math.min(widest - next, Math.ceil(excess / group.length));
    for (const index of group) widths[index] = widest - step;
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
export function formatLocation(path: string, line: number | undefined): string {
  return line === undefined ? path : `${path}:${line}`;
}

export function specPlace(spec: SpecBlock): string {
  return formatLocation(spec.path, spec.metadata.source?.start_line);
}

/** "1 spec", "2,000 specs". */
export function count(number: number, noun: string, plural: string = `${noun}s`): string {
  return `${number.toLocaleString("en")} ${number === 1 ? noun : plural}`;
}
