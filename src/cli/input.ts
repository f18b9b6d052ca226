import type { Readable } from "node:stream";
import type { Output } from "./output.ts";

/** stdin of the process, or a stream that behaves like it. */
export type InputStream = Readable & { readonly isTTY?: boolean };

/** Whether a person can be asked: they read remarks at a terminal, and type at one. */
export function canAsk({ input, output }: { readonly input: InputStream; readonly output: Output }): boolean {
  return input.isTTY === true && output.hasNoteTerminal;
}
