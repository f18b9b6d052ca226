import { KitError } from "../../base/kit-error.ts";
import { suggest } from "../../base/suggest.ts";
import type { CoveragePage, CoverageQuery, CoverageReport, CriterionTest } from "../../protocol/coverage.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import type { LastResult } from "../../protocol/test-results.ts";
import { buildCoverageReport } from "../../specs/coverage/build-report.ts";
import { type CriteriaIndex, indexCriteria } from "../../specs/coverage/criteria-index.ts";
import { listCriteria } from "../../specs/coverage/list-criteria.ts";
import { type ResolvedReferences, resolveReferences } from "../../specs/coverage/resolve-references.ts";
import { createTitleComparison } from "../../specs/coverage/similar-titles.ts";
import {
  readTestText,
  type TestText,
  type TestTitle,
  testsNamedBySpecs,
} from "../../specs/coverage/test-references.ts";
import { isTestPath } from "../../specs/model/mentions.ts";
import type { Project, RefreshOptions } from "../project.ts";
import { pageList } from "../query/page-list.ts";
import { lastResultOf } from "../results/last-result.ts";
import { readTestResults } from "../results/results-store.ts";
import { readFileInside } from "./write-file.ts";

export interface CoverageOptions extends RefreshOptions {
  /** Only criteria of these features, by label (`auth`). */
  readonly features?: readonly string[];
}

/** Test files beyond this are generated, and skipped with a diagnostic. */
const maxTestBytes = 2 * 1024 * 1024;
/** The report lists at most so many places per criterion. */
const mostTests = 100;

/**
 * Finds the acceptance criteria that a test names, with file and line as evidence.
 *
 * Counts explicit links only (see `CoverageEvidence`); tests with similar words are suggestions. Reads
 * every test file of the project once, in time linear in their size. A test has the result of its last report, found
 * by its title: one that was renamed has none.
 *
 * @see decisions/2026-11-21-coverage-evidence.md
 *
 * @example
 * ```ts
 * import { openProject } from "kit";
 * import { specCoverage } from "kit/project";
 *
 * const project = await openProject({ root: "." });
 * const { criteria } = await specCoverage(project);
 * console.log(criteria);
 * await project.close();
 * ```
 */
export async function specCoverage(
  project: Pick<Project, "root" | "specs" | "files" | "realPath">,
  options: CoverageOptions = {},
): Promise<CoverageReport> {
  const naming: SpecBlock[] = [];
  const index = indexCriteria(listCriteria(noticing(project.specs.all(), naming)));
  const selection = selectFeatures(index, options.features);
  const results = readTestResults(project.root);
  const evidence = new Map<number, CriterionTest[]>();
  const addTest = (criterion: number, test: CriterionTest): void => {
    const tests = evidence.get(criterion);
    if (tests === undefined) evidence.set(criterion, [test]);
    else if (tests.length < mostTests && !isKnown(tests, test)) tests.push(test);
  };
  const namedFeatures = new Map<string, Set<number>>();
  for (const { criterion, ...test } of testsNamedBySpecs(index, naming)) {
    const path = project.realPath(test.path);
    addTest(criterion, withResult(test, lastResultOf(results.of(path), { titles: [], line: test.line })));
    const features = namedFeatures.get(test.path) ?? new Set();
    namedFeatures.set(test.path, features.add(index.criteria[criterion]?.feature ?? -1));
  }

  const names = project.files().filter((path) => isTestPath(path));
  const paths = [...new Set(names.map(project.realPath))];
  // Without criteria no test can count, so no test is read.
  const read = index.criteria.length === 0 ? [] : paths;
  const diagnostics: Diagnostic[] = [];
  const titles: { path: string; titles: readonly TestTitle[]; features: ReadonlySet<number> }[] = [];
  for (const [done, path] of read.entries()) {
    options.signal?.throwIfAborted();
    if (done % 100 === 0) options.onProgress?.({ done, total: read.length, phase: "tests" });
    const text = await readTest(project.root, path, diagnostics);
    if (text === undefined) continue;
    const { references } = text;
    const resolved = resolveReferences(index, { path, references, namedBy: namedFeatures.get(path) ?? [] });
    const ended = results.of(path);
    for (const { criterion, test } of testsOf(resolved, { path, text }))
      addTest(criterion, withResult(test, lastResultOf(ended, { titles: text.titles, line: test.line })));
    diagnostics.push(...resolved.dangling.map(({ line, key }) => danglingKey({ path, line, key })));
    titles.push({ path, titles: text.titles, features: resolved.features });
  }

  const missing = index.criteria.flatMap((_, criterion) => (evidence.has(criterion) ? [] : [criterion]));
  const suggestions = createTitleComparison(index.criteria, missing);
  for (const file of titles) suggestions.add(file);
  return buildCoverageReport({
    ...index,
    evidence,
    suggestions,
    selection,
    testFiles: paths.length,
    diagnostics,
  });
}

function withResult(test: CriterionTest, result: LastResult | undefined): CriterionTest {
  return result === undefined ? test : { ...test, result };
}

/** One page of the criteria of a report. */
export function pageCoverage(report: CoverageReport, query: Omit<CoverageQuery, "feature">): CoveragePage {
  const { show = "all", ...page } = query;
  const criteria = report.criteria.filter(({ state }) => show === "all" || state === show);
  const about = ["coverage", show, report.by_feature.map(({ feature }) => feature)];
  const { items, ...rest } = pageList(criteria, page, { about, keyOf: ({ id, line }) => `${id} ${line}` });
  return { ...report, criteria: items, ...rest };
}

/** Keeps the blocks that name tests, so that the blocks of a large project are read once. */
function* noticing(blocks: Iterable<SpecBlock>, naming: SpecBlock[]): Generator<SpecBlock> {
  for (const block of blocks) {
    if (block.metadata.test_refs?.length) naming.push(block);
    yield block;
  }
}

function selectFeatures(
  index: CriteriaIndex,
  names: readonly string[] | undefined,
): ReadonlySet<number> | undefined {
  if (names === undefined || names.length === 0) return undefined;
  return new Set(
    names.map((name) => {
      const feature = index.featureByName.get(name.toLowerCase());
      if (feature !== undefined && feature !== null) return feature;
      const near = suggest(name, index.featureByName.keys());
      throw new KitError({
        code: "invalid_request",
        message: `No feature "${name}" has acceptance criteria.`,
        ...(near === undefined ? {} : { hint: `Did you mean ${near}?` }),
      });
    }),
  );
}

async function readTest(
  root: string,
  path: string,
  diagnostics: Diagnostic[],
): Promise<TestText | undefined> {
  try {
    const bytes = await readFileInside(root, { path, maxBytes: maxTestBytes });
    return bytes && readTestText(new TextDecoder().decode(bytes));
  } catch (error) {
    if (!(error instanceof KitError)) throw error;
    diagnostics.push({ severity: "warning", rule: "unreadable-file", message: error.message, path });
    return undefined;
  }
}

function testsOf(
  { namedCriteria }: ResolvedReferences,
  { path, text }: { readonly path: string; readonly text: TestText },
): { readonly criterion: number; readonly test: CriterionTest }[] {
  return namedCriteria.map(({ criterion, line, evidence, isWhole }) => {
    const test: CriterionTest = { path, line, evidence, quote: text.quote(line) };
    return { criterion, test: isWhole ? { ...test, whole_requirement: true } : test };
  });
}

/** A line that names a criterion twice is one place. */
function isKnown(tests: readonly CriterionTest[], { path, line }: CriterionTest): boolean {
  return tests.some((known) => known.path === path && known.line === line);
}

function danglingKey({ path, line, key }: { path: string; line: number; key: string }): Diagnostic {
  const message = `No spec has the criterion ${key}.`;
  return { severity: "warning", rule: "dangling-reference", code: "criterion_unknown", message, path, line };
}
