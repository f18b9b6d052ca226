import type { Output } from "../output.ts";
import { safeLine, safeLines } from "../text/safe-text.ts";
import { count } from "./places.ts";

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
