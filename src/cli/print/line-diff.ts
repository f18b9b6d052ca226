import { safeLine, safeLines } from "../text/safe-text.ts";
import type { Output } from "./output.ts";
import { count } from "./table.ts";

/** The most lines of one file to print; more are counted. */
const mostLines = 200;

/** Prints the changes of a text as `diff -u` does, below its path; nothing if it has not changed. */
export function printLineDiff(
  output: Output,
  change: {
    readonly path: string;
    readonly before: string;
    readonly after: string;
    /** A remark below the path. */
    readonly remark?: string | undefined;
  },
): void {
  const lines = lineDiff(change.before, change.after);
  if (lines.length === 0) return;
  output.line();
  output.line(output.style("bold", safeLine(change.path)));
  if (change.remark !== undefined) output.line(output.style("dim", safeLine(change.remark)));
  for (const line of lines.slice(0, mostLines)) {
    const style = line.startsWith("+") ? "green" : line.startsWith("-") ? "red" : "dim";
    // White space is significant in a diff.
    output.line(output.style(style, safeLines(line).replaceAll("\n", " ")));
  }
  if (lines.length > mostLines)
    output.line(`… ${count(lines.length - mostLines, "more line")}; --json has all of it.`);
}

/** Lines around a change that are shown with it. */
const contextLines = 3;
/** A change of more lines than the square of this number is printed as all old lines, then all new ones. */
const maxCells = 4_000_000;

type Step = readonly [mark: " " | "-" | "+", line: string];

/** The lines that differ between two texts, as `diff -u` shows them, without the names of files. */
export function lineDiff(before: string, after: string): readonly string[] {
  const steps = stepsBetween(linesOf(before), linesOf(after));
  const printedLines = new Set<number>();
  for (const [at, [mark]] of steps.entries()) {
    if (mark === " ") continue;
    for (let near = Math.max(0, at - contextLines); near <= at + contextLines; near += 1)
      printedLines.add(near);
  }
  const lines: string[] = [];
  let [oldLine, newLine] = [1, 1];
  for (const [at, [mark, line]] of steps.entries()) {
    if (printedLines.has(at)) {
      if (!printedLines.has(at - 1)) lines.push(`@@ -${oldLine} +${newLine} @@`);
      lines.push(`${mark}${line}`);
    }
    if (mark !== "+") oldLine += 1;
    if (mark !== "-") newLine += 1;
  }
  return lines;
}

function linesOf(text: string): readonly string[] {
  const lines = text.split(/\r\n|\n|\r/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

function stepsBetween(before: readonly string[], after: readonly string[]): readonly Step[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  const most = Math.min(before.length, after.length) - start;
  while (end < most && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  const same = (line: string): Step => [" ", line];
  return [
    ...before.slice(0, start).map(same),
    ...middleSteps(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...before.slice(before.length - end).map(same),
  ];
}

/** The longest common subsequence of lines, from the end, so that the steps come in order. */
function middleSteps(before: readonly string[], after: readonly string[]): readonly Step[] {
  const width = after.length + 1;
  if (before.length * width > maxCells)
    return [...before.map((line): Step => ["-", line]), ...after.map((line): Step => ["+", line])];
  const lengths = new Uint32Array((before.length + 1) * width);
  const at = (row: number, column: number): number => lengths[row * width + column] ?? 0;
  for (let row = before.length - 1; row >= 0; row -= 1)
    for (let column = after.length - 1; column >= 0; column -= 1)
      lengths[row * width + column] =
        before[row] === after[column]
          ? at(row + 1, column + 1) + 1
          : Math.max(at(row + 1, column), at(row, column + 1));
  const steps: Step[] = [];
  let [row, column] = [0, 0];
  while (row < before.length || column < after.length) {
    const [old, next] = [before[row], after[column]];
    if (old !== undefined && old === next) {
      steps.push([" ", old]);
      row += 1;
      column += 1;
    } else if (old !== undefined && (next === undefined || at(row + 1, column) >= at(row, column + 1))) {
      steps.push(["-", old]);
      row += 1;
    } else {
      steps.push(["+", next ?? ""]);
      column += 1;
    }
  }
  return steps;
}
