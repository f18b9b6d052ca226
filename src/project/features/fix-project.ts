import { KitError } from "../../base/kit-error.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { splitLines } from "../../specs/markdown/characters.ts";
import type { FixResult } from "../project.ts";
import { assertWritable, readFileInside, type WritableRoot, writeFileInside } from "./write-file.ts";

/** Writes the fixes of findings into their files; every other byte stays unchanged. */
export async function fixProject(root: WritableRoot, found: readonly Diagnostic[]): Promise<FixResult> {
  assertWritable(root);
  const fixed: Diagnostic[] = [];
  const written: string[] = [];
  const byPath = Map.groupBy(found, ({ path }) => path);
  for (const [path, findings] of byPath) {
    if (findings.every(({ fix }) => fix === undefined)) continue;
    const bytes = await readFileInside(root.root, { path });
    if (bytes === undefined) continue;
    const before = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
    if (Buffer.compare(Buffer.from(before), bytes) !== 0)
      throw new KitError({
        code: "conflict",
        message: `${path} is not UTF-8 text, so nothing can be mended in it.`,
      });
    const applied = applyFixes(before, findings);
    if (applied.text === before) continue;
    written.push(await writeFileInside(root, { path, content: applied.text, expected: bytes }));
    fixed.push(...applied.fixed);
  }
  return { fixed, written };
}

/** Applies fixes from the end of the text to its start, so that the places of the others stay right. */
function applyFixes(
  before: string,
  findings: readonly Diagnostic[],
): { readonly text: string; readonly fixed: readonly Diagnostic[] } {
  const mark = before.startsWith("\ufeff") ? 1 : 0;
  const { starts } = splitLines(before.slice(mark));
  const edits = findings
    .flatMap((finding) => {
      const { line, column, end_column, fix } = finding;
      if (line === undefined || column === undefined || end_column === undefined || !fix) return [];
      const start = mark + (starts[line - 1] ?? before.length);
      return [{ finding, text: fix.text, from: start + column - 1, to: start + end_column - 1 }];
    })
    .sort((one, other) => other.from - one.from);
  let text = before;
  let end = before.length;
  const fixed: Diagnostic[] = [];
  for (const { finding, text: mended, from, to } of edits) {
    // Two findings about one place: the next run mends what is left.
    if (to > end) continue;
    text = text.slice(0, from) + mended + text.slice(to);
    end = from;
    fixed.unshift(finding);
  }
  return { text, fixed };
}
