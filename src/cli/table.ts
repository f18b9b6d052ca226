import type { Output, Style } from "./output.ts";
import { displayWidth, pad, truncate } from "./text/display-width.ts";
import { safeLine } from "./text/safe-text.ts";

export interface Column<Row> {
  readonly header: string;
  /** As it stands in the record: the table makes it one safe line. */
  value(row: Row): string;
  style?(row: Row): Style | undefined;
  readonly align?: "left" | "right";
  /** Which end gives way when the terminal is too narrow; without it, values stay whole. */
  readonly cut?: "start" | "end";
}

/** Columns between two columns. */
const gap = 2;
/** What a column that gives way keeps. */
const leastWidth = 12;

/**
 * Prints rows: for a terminal with headings, aligned and cut to its width; otherwise one line per
 * row, whole values separated by tabs, without headings, as `cut`, `awk` and `grep` like them.
 *
 * Where the widest whole value leaves the others less room than it takes, and they do not fit in there, it
 * stands on a line of its own above the rest.
 */
export function printTable<Row>(output: Output, rows: readonly Row[], columns: readonly Column<Row>[]): void {
  const strips = columns.map((column) => toStrip(column, rows));
  if (!output.isTerminal) {
    for (const index of rows.keys()) output.line(strips.map(({ cells }) => cells[index]).join("\t"));
    return;
  }
  // A column that says nothing takes room from those that do.
  const filled = strips.filter(({ cells }) => cells.some((cell) => cell !== ""));
  if (filled.length === 0) return;
  const lead = filled.reduce((most, strip) => (fixedWidth(strip) > fixedWidth(most) ? strip : most));
  const widths = fitWidths(filled, output.width);
  if (lineWidth(widths) <= output.width && !isCrowded(filled, widths, lead)) {
    const heading = filled.map(({ header, align }) => ({ text: header, align, style: "dim" as const }));
    output.line(toLine(output, heading, widths));
    for (const index of rows.keys()) output.line(toLine(output, filled.map(cellOf(index)), widths));
    return;
  }
  const others = filled.filter((strip) => strip !== lead);
  const otherWidths = fitWidths(others, output.width - gap);
  for (const index of rows.keys()) {
    output.line(toLine(output, [cellOf(index)(lead)], [lead.width]));
    output.line(" ".repeat(gap) + toLine(output, others.map(cellOf(index)), otherWidths));
  }
}

/** A column as it is printed: its heading, and a cell for each row. */
interface Strip {
  readonly header: string;
  readonly cells: readonly string[];
  readonly styles: readonly (Style | undefined)[];
  readonly align: "left" | "right" | undefined;
  readonly cut: "start" | "end" | undefined;
  /** Of the widest cell or the heading. */
  readonly width: number;
}

function toStrip<Row>({ header, value, style, align, cut }: Column<Row>, rows: readonly Row[]): Strip {
  const cells = rows.map((row) => safeLine(value(row)));
  return {
    header,
    cells,
    styles: rows.map((row) => style?.(row)),
    align,
    cut,
    width: cells.reduce((most, cell) => Math.max(most, displayWidth(cell)), header.length),
  };
}

interface Cell {
  readonly text: string;
  readonly align: "left" | "right" | undefined;
  readonly cut?: "start" | "end" | undefined;
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

/** Whether values are cut although the widest whole one takes more room than all that give way. */
function isCrowded(strips: readonly Strip[], widths: readonly number[], lead: Strip): boolean {
  const isCut = strips.some(({ width }, index) => (widths[index] ?? 0) < width);
  const room = strips.reduce(
    (sum, { cut }, index) => sum + (cut === undefined ? 0 : (widths[index] ?? 0)),
    0,
  );
  return isCut && room < fixedWidth(lead);
}

function lineWidth(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, gap * (widths.length - 1));
}

function fixedWidth({ cut, width }: Strip): number {
  return cut === undefined ? width : 0;
}

/** Takes columns from the widest that give way, until the line fits or all of them are small. */
export function fitWidths(
  wishes: readonly { readonly width: number; readonly cut: unknown }[],
  available: number,
): readonly number[] {
  const widths = wishes.map((wish) => wish.width);
  for (let excess = lineWidth(widths) - available; excess > 0; excess = lineWidth(widths) - available) {
    const givers = [...widths.keys()].filter(
      (index) => wishes[index]?.cut !== undefined && (widths[index] ?? 0) > leastWidth,
    );
    const sizes = givers.map((index) => widths[index] ?? 0);
    const widest = Math.max(...sizes);
    const group = givers.filter((index) => widths[index] === widest);
    if (group.length === 0) break;
    const next = Math.max(leastWidth, ...sizes.filter((size) => size < widest));
    const step = Math.min(widest - next, Math.ceil(excess / group.length));
    for (const index of group) widths[index] = widest - step;
  }
  return widths;
}
