import type { SpecBlock } from "../../protocol/spec-block.ts";
import { safeLine, safeLines } from "../text/safe-text.ts";
import type { Output } from "./output.ts";

/** A name, and what it says: nothing, one line, or one line each. */
export type Field = readonly [name: string, value: string | readonly string[] | undefined];

/** Columns of the names. */
const nameWidth = 12;

/** Prints the fields of one record below each other, without those that say nothing. */
export function printFields(output: Output, fields: readonly Field[]): void {
  for (const [name, value = ""] of fields) {
    const lines = (typeof value === "string" ? [value] : value).filter((line) => line !== "");
    for (const [index, line] of lines.entries()) {
      output.line(`${output.style("dim", (index === 0 ? name : "").padEnd(nameWidth))}${safeLine(line)}`);
    }
  }
}

/** Prints a whole file: byte for byte into a pipe or a file, without what could harm a terminal there. */
export function printDocument(output: Output, content: string): void {
  const text = output.isTerminal ? safeLines(content) : content;
  output.write(output.isTerminal && !text.endsWith("\n") ? `${text}\n` : text);
}

/** More losses than this are only counted; `--json` has all of them. */
const mostLosses = 20;

/** Says what a target format could not hold. */
export function noteLosses(output: Output, losses: readonly string[]): void {
  for (const loss of losses.slice(0, mostLosses)) {
    output.note(`${output.noteStyle("yellow", "lost:")} ${safeLine(loss)}`);
  }
  if (losses.length > mostLosses)
    output.note(`… and ${count(losses.length - mostLosses, "more loss", "more losses")}.`);
}

/** `path:line`, which terminals and editors open. */
export function place(path: string, line: number | undefined): string {
  return line === undefined ? path : `${path}:${line}`;
}

export function specPlace(spec: SpecBlock): string {
  return place(spec.path, spec.metadata.source?.start_line);
}

/** "1 spec", "2,000 specs". */
export function count(number: number, noun: string, plural: string = `${noun}s`): string {
  return `${number.toLocaleString("en")} ${number === 1 ? noun : plural}`;
}
