import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { GuidelineRecord } from "../guideline-record.ts";
import { globDiagnostics } from "./glob-diagnostics.ts";
import { ineffectiveGuidelines, oversizedFiles } from "./ineffective-guidelines.ts";
import { repeatedGuidelines, type SyncedFormats } from "./repeated-guidelines.ts";

/**
 * What is wrong with the guidelines of a project as a whole: duplicates, contradictions between
 * sources, globs that match no file, rules without effect, imports of files that are not there.
 *
 * `files` are all files of the project; copies among `synced` formats that a sync leaves alone are none. In path, then line order.
 */
export function lintGuidelines(
  records: readonly GuidelineRecord[],
  files: readonly string[],
  synced: SyncedFormats = {},
): Diagnostic[] {
  const known = new Set(files);
  const own = records.filter((record) => record.source_type !== "sample");
  const diagnostics = [
    ...repeatedGuidelines(own, synced),
    ...globDiagnostics(own, files),
    ...ineffectiveGuidelines(own, (path) => known.has(path)),
    ...oversizedFiles(own),
  ];
  return diagnostics.sort((a, b) =>
    a.path === b.path ? (a.line ?? 0) - (b.line ?? 0) : a.path < b.path ? -1 : 1,
  );
}
