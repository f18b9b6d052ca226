import type { Output, Style } from "./output.ts";
import { displayWidth, pad, truncate } from "./text/display-width.ts";
import { safeLine } from "./text/safe-text.ts";

export interface Column<Row> {
  readonly header: string;
  /** As it stands in the record: the table makes it one safe line. */
  value(row: Row): string;
  style?(row: Row): Style | undefined;
  readonly align?: "left" | "right";
  /** Which end gives way when the terminal is too narrow; without it, the column keeps its width. */
  readonly cut?: "start" | "end";
}

/** Columns between two columns. */
const gap = 2;
/** What a column that gives way keeps. */
const leastWidth = 12;

/**
 * Prints rows: for a terminal with headings, aligned and cut to its width; otherwise one line per
 * row, whole values separated by tabs, without headings, as `cut`, `awk` and `grep` like them.
 */
export function printTable<Row>(output: Output, rows: readonly Row[], columns: readonly Column<Row>[]): void {
  const cells = rows.map((row) => columns.map((column) => safeLine(column.value(row))));
  if (!output.isTerminal) {
    for (const line of cells) output.line(line.join("\t"));
    return;
  }
  const filled = columns.map((_, index) => cells.some((line) => line[index] !== ""));
  if (filled.includes(false)) {
    // A column that says nothing takes room from those that do.
    const kept = columns.filter((_, index) => filled[index]);
    if (kept.length > 0) printTable(output, rows, kept);
    return;
  }
  const widths = fitWidths(
    columns.map((column, index) => ({
      width: cells.reduce(
        (most, line) => Math.max(most, displayWidth(line[index] ?? "")),
        column.header.length,
      ),
      gives: column.cut !== undefined,
    })),
    output.width,
  );
  const print = (values: readonly string[], styleOf: (index: number) => Style | undefined): void => {
    const line = values.map((value, index) => {
      const column = columns[index];
      const width = widths[index] ?? 0;
      const text = column?.cut === undefined ? value : truncate(value, width, column.cut);
      const style = styleOf(index);
      const padded =
        index === columns.length - 1 && column?.align !== "right" ? text : pad(text, width, column?.align);
      return style === undefined ? padded : output.style(style, padded);
    });
    output.line(line.join(" ".repeat(gap)));
  };
  print(
    columns.map((column) => column.header),
    () => "dim",
  );
  for (const [number, row] of rows.entries()) {
    print(cells[number] ?? [], (index) => columns[index]?.style?.(row));
  }
}

/** Takes columns from the widest that give way, until the line fits or all of them are small. */
export function fitWidths(
  wishes: readonly { readonly width: number; readonly gives: boolean }[],
  available: number,
): readonly number[] {
  const widths = wishes.map((wish) => wish.width);
  let excess = widths.reduce((sum, width) => sum + width, gap * (widths.length - 1)) - available;
  while (excess > 0) {
    const givers = wishes.flatMap((wish, index) =>
      wish.gives && (widths[index] ?? 0) > leastWidth ? [index] : [],
    );
    if (givers.length === 0) break;
    const widest = Math.max(...givers.map((index) => widths[index] ?? 0));
    const group = givers.filter((index) => widths[index] === widest);
    const next = Math.max(
      leastWidth,
      ...givers.map((index) => widths[index] ?? 0).filter((width) => width < widest),
    );
    const step = Math.min(widest - next, Math.ceil(excess / group.length));
    for (const index of group) widths[index] = widest - Math.max(1, step);
    excess -= group.length * Math.max(1, step);
  }
  return widths;
}
