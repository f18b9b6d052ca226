import type { SpecBlock } from "../../protocol/spec-block.ts";

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
