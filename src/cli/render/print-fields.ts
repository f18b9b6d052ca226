import type { Output } from "../output.ts";
import { safeLine } from "../text/safe-text.ts";

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
