import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { GuidelineRecord } from "../guideline-record.ts";
import { findContradictions } from "./find-contradictions.ts";
import { findCopies, type SyncedFormats } from "./find-copies.ts";
import { findDeadGlobs } from "./find-dead-globs.ts";
import { findDeadLinks } from "./find-dead-links.ts";
import { findIneffective } from "./find-ineffective.ts";
import { createScans, type LintProject } from "./finding.ts";
import { createIgnoreList } from "./ignore-findings.ts";

export interface LintOptions extends Omit<LintProject, "scanOf" | "isAsked"> {
  /** The text of a project file; without it, findings have the line of their guideline. */
  readonly readText?: ((path: string) => string | undefined) | undefined;
  /** Identical copies among these formats are no duplicates. */
  readonly synced?: SyncedFormats | undefined;
  /** Files, rules, and rules of files whose findings are left out. */
  readonly ignore?: readonly string[] | undefined;
  /** Only the findings of these files, for a small part of the work; they are compared with all others. */
  readonly only?: ReadonlySet<string> | undefined;
}

/**
 * Checks the guidelines of a project as a whole: copies and drift, contradictions, globs and links that lead to no file, rules
 * without effect. In path, then line order.
 */
export function lintGuidelines(records: readonly GuidelineRecord[], options: LintOptions): Diagnostic[] {
  const { only } = options;
  const isAsked: LintProject["isAsked"] = ({ source_file }) => only?.has(source_file) ?? true;
  const project = { ...options, scanOf: createScans(options.readText), isAsked };
  const ignored = createIgnoreList(options.ignore);
  // A finding names two files; the records of an ignored one must not hide a finding about two others.
  const checked = records.filter(
    ({ source_type, source_file }) => source_type !== "sample" && !ignored.hasPath(source_file),
  );
  const asked = checked.filter(isAsked);
  const diagnostics = [
    ...findCopies(checked, project, options.synced),
    ...findContradictions(checked, project),
    ...findDeadGlobs(asked, project),
    ...findDeadLinks(asked, project),
    ...findIneffective(checked, project),
  ];
  return diagnostics
    .filter((finding) => only?.has(finding.path) !== false && !ignored.hasFinding(finding))
    .sort((a, b) => (a.path === b.path ? (a.line ?? 0) - (b.line ?? 0) : a.path < b.path ? -1 : 1));
}
