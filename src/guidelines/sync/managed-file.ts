import { type ManagedMark, managedHash, readMarkText, toMarkText } from "./managed-mark.ts";

/** The mark of a file that a sync wrote as a whole, and whether it is still as it was written. */
export interface ManagedFile extends ManagedMark {
  readonly isIntact: boolean;
}

/** The mark is a YAML comment in the first line of the front matter, which every such file has. */
const markLine = /^\ufeff?---[ \t]*(\r\n|\n|\r)# (kit:sync .*)(?:\r\n|\n|\r)/;

/** Puts the mark into a file with front matter. */
export function markFile(text: string, source: ManagedMark["source"]): string {
  const mark = toMarkText({ source, hash: managedHash(text) });
  return text.replace(/^---\n/, `---\n# ${mark}\n`);
}

export function managedFileOf(text: string): ManagedFile | undefined {
  const mark = readMarkText(markLine.exec(text)?.[2] ?? "");
  return mark && { ...mark, isIntact: managedHash(withoutMark(text)) === mark.hash };
}

/** A file as it was before it was marked. */
export function withoutMark(text: string): string {
  return text.replace(markLine, "---$1").replace(/^\ufeff/, "");
}
