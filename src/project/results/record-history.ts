import type { CriterionTest } from "../../protocol/coverage.ts";
import type { ResultOrigin } from "../../protocol/test-results.ts";
import { type CoverageOptions, specCoverage } from "../features/coverage.ts";
import type { Project } from "../project.ts";
import { type CriterionParts, type FilePart, writeHistory } from "./history-store.ts";

interface NewResults {
  readonly recorded_at: string;
  readonly origin: ResultOrigin;
  /** The test files of the report. */
  readonly files: ReadonlySet<string>;
}

/**
 * Keeps how the criteria of a report stand on its commit. Only results of this report count here: the last result of another file can be
 * one of another commit.
 */
export async function recordHistory(
  project: Pick<Project, "root" | "specs" | "files" | "realPath">,
  { recorded_at, origin, files }: NewResults,
  options: CoverageOptions = {},
): Promise<void> {
  const { criteria } = await specCoverage(project, options);
  const states = new Map<string, CriterionParts>();
  for (const { id, tests } of criteria) {
    // A comment at the top of a file belongs to no test that could run.
    const counted = tests.filter(({ titles }) => titles?.length !== 0);
    const byFile = Map.groupBy(counted, ({ path }) => project.realPath(path));
    const isReported = (path: string): boolean => files.has(path);
    const isAbout = [...byFile].some(
      ([path, own]) => isReported(path) && own.some(({ result }) => result !== undefined),
    );
    if (!isAbout) continue;
    const parts = [...byFile].map(
      ([path, own]) => [path, isReported(path) ? toPart(own) : undefined] as const,
    );
    states.set(id, new Map(parts));
  }
  writeHistory(project.root, { recorded_at, origin, criteria: states });
}

function toPart(tests: readonly CriterionTest[]): FilePart {
  const part = { passed: 0, failed: 0, skipped: 0, missing: 0 };
  for (const { result } of tests) {
    if (result === undefined) part.missing += 1;
    else if (result.status === "skipped") {
      part.skipped += 1;
      // Some cases of a table can be skipped, and others pass.
      if (result.tests > (result.skipped ?? 0)) part.passed += 1;
    } else part[result.status] += 1;
  }
  return part;
}
