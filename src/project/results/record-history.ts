import type { CriterionTest } from "../../protocol/coverage.ts";
import { coverageBy } from "../features/coverage.ts";
import type { Project } from "../project.ts";
import { type CriterionParts, type FilePart, writeHistory } from "./history-store.ts";
import type { RecordedReport } from "./results-store.ts";

/**
 * Keeps how the criteria of a report stand on its commit. Only results of this report count: the last result of another file can be one of
 * another commit, and other reports can come in meanwhile.
 */
export async function recordHistory(
  project: Pick<Project, "root" | "specs" | "files" | "realPath">,
  { recorded_at, origin, files }: Pick<RecordedReport, "recorded_at" | "origin" | "files">,
): Promise<void> {
  const results = {
    of: (path: string) => files.get(path)?.map((result) => ({ ...result, recorded_at, origin })) ?? [],
    files: () => files.keys(),
    hasChanged: () => false,
  };
  const { criteria } = await coverageBy(results, project);
  const states = new Map<string, CriterionParts>();
  for (const { id, tests } of criteria) {
    // A comment at the top of a file belongs to no test that could run.
    const counted = tests.filter(({ titles }) => titles?.length !== 0);
    if (counted.every(({ result }) => result === undefined)) continue;
    const byFile = Map.groupBy(counted, ({ path }) => project.realPath(path));
    const parts = [...byFile].map(
      ([path, own]) => [path, files.has(path) ? toPart(own) : undefined] as const,
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
