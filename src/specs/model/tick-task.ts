import { KitError } from "../../base/kit-error.ts";
import type { Framework } from "../../protocol/spec-block.ts";
import { splitLines } from "../markdown/characters.ts";

/** The box of a list item, or of a heading that is one, up to the character in it. */
const boxStart = /^\ufeff?[ \t]*(?:#{1,6}[ \t]+)?(?:[-*+]|\d{1,9}[.)])[ \t]+\[(?=[^[\]]\])/;
const anyBox = /^[ \t]*(?:#{1,6}[ \t]+)?(?:[-*+]|\d{1,9}[.)])[ \t]+\[([xX])\]/gm;

/**
 * Returns the text of a spec file with the box of a task ticked: one character differs, in the way of the task's format. Spec Kit writes
 * `X`, all others `x`, and a file that uses only the other letter keeps it. A ticked box stays as it is.
 *
 * Throws `invalid_request` if the line of the task has no box: the text is another one than the task was read from.
 *
 * @example
 * ```ts
 * import { tickTask } from "kit/specs";
 *
 * const text = "# Tasks\n\n- [ ] 1. Take payments\n";
 * console.log(tickTask(text, { line: 3, framework: "fw_a" })); // … - [x] 1. Take payments
 * ```
 */
export function tickTask(text: string, task: BoxedTask): string {
  const { starts, ends } = splitLines(text);
  const start = starts[task.line - 1] ?? text.length;
  const box = boxStart.exec(text.slice(start, ends[task.line - 1] ?? start));
  if (box === null) {
    throw new KitError({
      code: "invalid_request",
      message: `Line ${task.line} has no box of a task.`,
      hint: "Read the task from the text that is ticked.",
    });
  }
  const at = start + box[0].length;
  if (/[xX]/.test(text.charAt(at))) return text;
  return `${text.slice(0, at)}${letterOf(text, task)}${text.slice(at + 1)}`;
}

/** Where a task stands: the line of its box, from 1, and the format of its file. */
export interface BoxedTask {
  readonly line: number;
  readonly framework: Framework;
}

function letterOf(text: string, { framework }: BoxedTask): "x" | "X" {
  const letters = new Set([...text.matchAll(anyBox)].map((match) => match[1]));
  if (letters.size === 1) return letters.has("X") ? "X" : "x";
  return framework === "fw_d" ? "X" : "x";
}
