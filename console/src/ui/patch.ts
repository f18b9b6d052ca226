import type { DiffLine } from "./line-diff.ts";

/** The change of one file in a diff of Git. */
export interface PatchedFile {
  readonly path: string;
  readonly lines: readonly DiffLine[];
}

/** Reads a diff as Git prints it. Lines that belong to no change, such as the end of a diff that was cut, stand as left out. */
export function parsePatch(text: string): readonly PatchedFile[] {
  const files: { path: string; lines: DiffLine[] }[] = [];
  let isHeader = true;
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const file = files.at(-1);
    const header = /^diff --git (?:"?a\/.*?"? )?"?b\/(.*?)"?$/.exec(line);
    if (header !== null || file === undefined) {
      files.push({ path: header?.[1] ?? line, lines: [] });
      isHeader = true;
    } else if (isHeader && line.startsWith("new file")) file.path += " (a new file)";
    else if (isHeader && line.startsWith("deleted file")) file.path += " (deleted)";
    else if (line.startsWith("@@")) {
      isHeader = false;
      const start = /\+(\d+)/.exec(line)?.[1] ?? "1";
      if (Number(start) > 1) file.lines.push({ mark: "@", text: `to line ${start}` });
    } else if (!isHeader || line.startsWith("Binary")) file.lines.push(toLine(line));
  }
  return files;
}

function toLine(line: string): DiffLine {
  const mark = line[0];
  if (mark === "+" || mark === "-" || mark === " ") return { mark, text: line.slice(1) };
  return { mark: "@", text: line.replace(/^\\ |^… /, "") };
}
