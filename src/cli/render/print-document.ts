import type { Output } from "../output.ts";
import { safeLine, safeLines } from "../text/safe-text.ts";

/** Prints a whole file: byte for byte into a pipe or a file, without what could harm a terminal there. */
export function printDocument(output: Output, content: string): void {
  const text = output.isTerminal ? safeLines(content) : content;
  output.write(output.isTerminal && !text.endsWith("\n") ? `${text}\n` : text);
}

/** Says what a target format could not hold. */
export function noteLosses(output: Output, losses: readonly string[]): void {
  for (const loss of losses) output.note(`${output.noteStyle("yellow", "lost:")} ${safeLine(loss)}`);
}
