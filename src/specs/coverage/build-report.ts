import type {
  CoverageCount,
  CoverageReport,
  CriterionCoverage,
  CriterionTest,
} from "../../protocol/coverage.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { CriterionState } from "../../protocol/enums.ts";
import type { LastResult } from "../../protocol/test-results.ts";
import type { CriteriaList } from "./list-criteria.ts";
import type { TitleComparison } from "./similar-titles.ts";

/** The evidence per criterion, by its index. */
export type Evidence = ReadonlyMap<number, readonly CriterionTest[]>;

export interface ReportInput extends CriteriaList {
  readonly evidence: Evidence;
  readonly suggestions: Pick<TitleComparison, "suggestionsFor">;
  /** Features to report on; default all. */
  readonly selection?: ReadonlySet<number> | undefined;
  readonly testFiles: number;
  readonly diagnostics: readonly Diagnostic[];
}

/** Puts criteria, evidence and suggestions together, and counts. */
export function buildCoverageReport(input: ReportInput): CoverageReport {
  const { criteria, features, evidence, suggestions, selection } = input;
  const covered = criteria.flatMap((criterion, index): readonly CriterionCoverage[] => {
    if (selection?.has(criterion.feature) === false) return [];
    const tests = (evidence.get(index) ?? []).toSorted((one, other) => weakness(one) - weakness(other));
    const { id, number, spec_id, path, line, text } = criterion;
    const feature = features[criterion.feature]?.label ?? "";
    const similar = tests.length > 0 ? [] : suggestions.suggestionsFor(index);
    const suggested = similar.map(({ path, line, score, text }) => {
      return { path, line, score: Math.round(score * 100) / 100, quote: text.slice(0, 200) };
    });
    const state = stateOf(tests);
    const covered = { id, feature, number, spec_id, path, line, text, state, tests, suggestions: suggested };
    return [hasStaleResult(covered) ? { ...covered, stale: true } : covered];
  });
  const byFeature = Map.groupBy(covered, ({ feature }) => feature);
  const selected = features.filter((_, index) => selection?.has(index) !== false);
  return {
    criteria: covered,
    totals: count(covered),
    by_feature: selected.map(({ label, path }) => ({
      feature: label,
      path,
      ...count(byFeature.get(label) ?? []),
    })),
    test_files: input.testFiles,
    diagnostics: input.diagnostics,
  };
}

/** A skipped test proves nothing, and hides what it would find: a criterion passes only if all of its tests did. */
function stateOf(tests: readonly CriterionTest[]): CriterionState {
  if (tests.length === 0) return "uncovered";
  // A comment at the top of a file belongs to no test that could run.
  const results = tests.filter(({ titles }) => titles?.length !== 0).map(({ result }) => result);
  if (results.length === 0) return "never_run";
  if (results.some((result) => result?.status === "failed")) return "failing";
  if (results.every((result) => result?.status === "passed")) return "passing";
  return results.some(hasPassed) ? "partly_run" : "never_run";
}

function hasPassed(result: LastResult | undefined): boolean {
  return result !== undefined && result.status !== "failed" && result.tests > (result.skipped ?? 0);
}

/** Whether a result that decides the state is out of date. Other results, such as that of a skipped test, do not count. */
function hasStaleResult({ state, tests }: Pick<CriterionCoverage, "state" | "tests">): boolean {
  return tests.some(
    ({ result, stale }) =>
      stale !== undefined && (state === "failing" ? result?.status === "failed" : hasPassed(result)),
  );
}

/** The sort key of tests: those that name the criterion itself come first. */
function weakness(test: CriterionTest): number {
  return test.whole_requirement ? 1 : 0;
}

function count(criteria: readonly CriterionCoverage[]): CoverageCount {
  const covered = criteria.filter(({ tests }) => tests.length > 0);
  const uncovered = criteria.length - covered.length;
  const inState = (state: CriterionState): number => criteria.filter((one) => one.state === state).length;
  return {
    criteria: criteria.length,
    covered: covered.length,
    covered_by_requirement: covered.filter(({ tests }) => tests.every((test) => test.whole_requirement))
      .length,
    uncovered,
    passing: inState("passing"),
    failing: inState("failing"),
    never_run: inState("never_run"),
    partly_run: inState("partly_run"),
    stale: criteria.filter(({ stale }) => stale === true).length,
    suggested: criteria.filter(({ suggestions }) => suggestions.length > 0).length,
  };
}
