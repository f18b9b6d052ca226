import { suggest } from "../../base/error-text.ts";
import { KitError } from "../../base/kit-error.ts";
import { inTurns } from "../../base/steps.ts";
import type {
  CoveragePage,
  CoverageQuery,
  CoverageReport,
  CriterionCoverage,
  CriterionTest,
  StaleResult,
} from "../../protocol/coverage.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { LastResult } from "../../protocol/test-results.ts";
import { buildCoverageReport } from "../../specs/coverage/build-report.ts";
import type { CriteriaIndex } from "../../specs/coverage/criteria-index.ts";
import { createTitleComparison, type SimilarTitle } from "../../specs/coverage/similar-titles.ts";
import { namedTestsInSteps } from "../../specs/coverage/test-references.ts";
import { createPauses } from "../pauses.ts";
import type { Project, RefreshOptions } from "../project.ts";
import { indexOf } from "../project-index.ts";
import { pageList } from "../query/page.ts";
import {
  criterionName,
  digestOfText,
  readTestResults,
  type StoredResult,
  type TestResults,
} from "../results/results-store.ts";
import {
  type ProjectCriteria,
  readCriteria,
  readTestLinks,
  stepMs,
  type TestLinks,
  testsIn,
} from "./criteria-links.ts";
import { readKept } from "./kept-files.ts";

export interface CoverageOptions extends RefreshOptions {
  /** Only criteria of these features, by label (`auth`). */
  readonly features?: readonly string[];
}

/** The limit of places that the report lists per criterion. */
const mostTests = 100;

/**
 * Finds the acceptance criteria that a test names, with file and line as evidence.
 *
 * Counts explicit links only (see `CoverageEvidence`); tests with similar words are suggestions. Reads the test files that have changed
 * since the last call, of this process or another one, in time linear in their size. A test has the result of its last report, found by its title; a renamed test has no
 * result.
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
  project: CoveredProject,
  options: CoverageOptions = {},
): Promise<CoverageReport> {
  return await coverageBy(readTestResults(project.root), project, options);
}

type CoveredProject = Pick<Project, "root" | "specs" | "files" | "realPath">;

/** The same by other results than the last ones of each file. */
export async function coverageBy(
  results: TestResults,
  project: CoveredProject,
  options: CoverageOptions = {},
): Promise<CoverageReport> {
  const { index } = readCriteria(project);
  const selection = selectFeatures(index, options.features);
  const { evidence, guesses, links, count, diagnostics } = await readEvidence(results, project, options);
  const missing = index.criteria.flatMap((_, criterion) => (evidence.has(criterion) ? [] : [criterion]));
  const suggestions = createTitleComparison(index.criteria, missing);
  for (const { path, text, resolved } of links)
    suggestions.add({ path, titles: text.titles, features: resolved.features });
  return buildCoverageReport({
    ...index,
    evidence,
    suggestions: {
      suggestionsFor: (at) => [...(guesses.get(at) ?? []), ...suggestions.suggestionsFor(at)],
    },
    selection,
    testFiles: count,
    diagnostics,
  });
}

/** The tests that criteria have, by the key of the criterion: those of the report, without its suggestions, by criteria that were read before. */
export async function testsOfCriteria(
  project: CoveredProject,
  known: ProjectCriteria,
): Promise<ReadonlyMap<string, readonly CriterionTest[]>> {
  const { evidence } = await readEvidence(readTestResults(project.root), project, { known });
  return new Map([...evidence].map(([at, tests]) => [known.index.criteria[at]?.id ?? "", tests]));
}

/** The places that name criteria, with the results of the tests there. */
async function readEvidence(
  results: TestResults,
  project: CoveredProject,
  { known = readCriteria(project), ...options }: RefreshOptions & { readonly known?: ProjectCriteria },
) {
  const { index, sources } = known;
  const evidence = new Map<number, CriterionTest[]>();
  const addTest = (criterion: number, test: CriterionTest): void => {
    const tests = evidence.get(criterion);
    if (tests === undefined) evidence.set(criterion, [test]);
    else if (tests.length < mostTests && !isKnown(tests, test)) tests.push(test);
  };
  const guesses = new Map<number, SimilarTitle[]>();
  const addGuess = (criterion: number, guess: SimilarTitle): void => {
    guesses.set(criterion, [...(guesses.get(criterion) ?? []), guess]);
  };
  const pause = createPauses(stepMs, options.signal);
  const { realOf } = indexOf(project).aliases();
  const namedTests = await inTurns(namedTestsInSteps(index, sources.naming), pause);
  for (const { criterion, isClaim, ...test } of namedTests) {
    const { path, line, quote } = test;
    if (isClaim) addGuess(criterion, { path, line, score: 1, text: quote });
    else addTest(criterion, withResult(test, lastResultOf(results.of(realOf(path)), undefined)));
    const waiting = pause();
    if (waiting !== undefined) await waiting;
  }

  const { links, count, kept, diagnostics: unreadable } = await readTestLinks(project, { ...options, known });
  const diagnostics: Diagnostic[] = [...unreadable];
  for (const link of links) {
    const { path, text, resolved } = link;
    const fileResults = results.of(path);
    for (const { criterion, test } of testsIn(link))
      addTest(criterion, withResult(test, lastResultOf(fileResults, test.titles)));
    for (const { criterion, line } of resolved.uncertain)
      addGuess(criterion, { path, line, score: guessScore, text: text.quotes[line] ?? "" });
    diagnostics.push(...resolved.dangling.map(({ line, key }) => danglingKey({ path, line, key })));
    const waiting = pause();
    if (waiting !== undefined) await waiting;
  }

  const aged = await withAges(evidence, { sources, results, project, kept });
  return { evidence: aged, guesses, links, count, diagnostics };
}

/** The score of a code that is spelled in another way: below that of a title with the same words. */
const guessScore = 0.5;

/**
 * Marks stale results: the test's file, the code of the criterion's block, or the text of the criterion has changed since the result
 * was submitted. Digests decide, because the time of a file changes with every checkout.
 */
async function withAges(
  evidence: ReadonlyMap<number, readonly CriterionTest[]>,
  parts: Pick<ProjectCriteria, "sources"> &
    Pick<TestLinks, "kept"> & { readonly results: TestResults; readonly project: CoveredProject },
): Promise<ReadonlyMap<number, readonly CriterionTest[]>> {
  const { sources, results, project, kept } = parts;
  const run = [...evidence].filter(([, tests]) => tests.some(({ result }) => result !== undefined));
  const others = run.flatMap(([at, tests]) => [
    ...tests.map(({ path }) => path),
    ...(sources.codeOfBlock.get(sources.criteria.criteria[at]?.spec_id ?? "") ?? []),
  ]);
  const unread = [...new Set(others)].filter((path) => !kept.has(path));
  const { files } = await readKept(indexOf(project), unread);
  const aged = new Map(evidence);
  for (const [at, tests] of run) {
    const criterion = sources.criteria.criteria[at];
    if (criterion === undefined) continue;
    const marked = tests.map((test): CriterionTest => {
      if (test.result === undefined) return test;
      const since = test.result.recorded_at;
      const hasChanged = (path: string): boolean =>
        results.hasChanged(path, { digest: (kept.get(path) ?? files.get(path))?.digest ?? "", since });
      const stale: StaleResult[] = [];
      if (hasChanged(test.path)) stale.push({ cause: "test", path: test.path });
      for (const path of sources.codeOfBlock.get(criterion.spec_id) ?? [])
        if (hasChanged(path)) stale.push({ cause: "code", path });
      const digest = digestOfText(criterion.text);
      if (results.hasChanged(criterionName(criterion.id), { digest, since }))
        stale.push({ cause: "criterion", path: criterion.path });
      return stale.length === 0 ? test : { ...test, stale };
    });
    aged.set(at, marked);
  }
  return aged;
}

function withResult(test: CriterionTest, result: LastResult | undefined): CriterionTest {
  return result === undefined ? test : { ...test, result };
}

/** One page of the criteria of a report. */
export function pageCoverage(report: CoverageReport, query: Omit<CoverageQuery, "feature">): CoveragePage {
  const { show = "all", spec, file, ...page } = query;
  const criteria = report.criteria.filter(
    (criterion) =>
      isShown(criterion, show) &&
      (spec === undefined || criterion.spec_id === spec) &&
      (file === undefined || criterion.tests.some(({ path }) => path === file)),
  );
  const about = ["coverage", show, spec, file, report.by_feature.map(({ feature }) => feature)];
  const { items, ...rest } = pageList(criteria, page, { about, keyOf: ({ id, line }) => `${id} ${line}` });
  return { ...report, criteria: items, ...rest };
}

function isShown({ state, stale }: CriterionCoverage, show: NonNullable<CoverageQuery["show"]>): boolean {
  if (show === "all") return true;
  if (show === "stale") return stale === true;
  return show === "not_passing" ? state !== "passing" : state === show;
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

/** A line that names a criterion twice is one place. */
function isKnown(tests: readonly CriterionTest[], { path, line }: CriterionTest): boolean {
  return tests.some((test) => test.path === path && test.line === line);
}

export function danglingKey({ path, line, key }: { path: string; line: number; key: string }): Diagnostic {
  const message = `No spec has the criterion ${key}.`;
  return { severity: "warning", rule: "dangling-reference", code: "criterion_unknown", message, path, line };
}

/**
 * The last result of the tests with these titles, or of all tests of a file without titles. `undefined` if no result has such a
 * title: the test never ran, or was renamed since.
 */
function lastResultOf(
  results: readonly StoredResult[],
  titles: readonly string[] | undefined,
): LastResult | undefined {
  const found =
    titles === undefined
      ? results
      : results.filter((result) => titles.some((title) => isNamed(result, title)));
  const [first] = found;
  if (first === undefined) return undefined;
  const { status, message } =
    found.find((one) => one.status === "failed") ?? found.find((one) => one.status === "skipped") ?? first;
  const skipped = found.filter((one) => one.status === "skipped").length;
  const durations = found.flatMap(({ duration_ms }) => duration_ms ?? []);
  return {
    status,
    tests: found.length,
    ...(skipped > 0 && { skipped }),
    recorded_at: first.recorded_at,
    ...first.origin,
    ...(durations.length > 0 && { duration_ms: durations.reduce((sum, duration) => sum + duration, 0) }),
    ...(status === "failed" && message !== undefined && { message }),
  };
}

/** Places where runners put a value in: `%s`, `$name`, `${name}`. */
const placeholder = /%[sdifjopc#$%]|\$\{[^}]{0,100}\}|\$[\w.]{1,100}/;

/** Whether a result is that of a test, or of one inside a suite, of this title as the source has it. */
export function isNamed({ titles }: Pick<StoredResult, "titles">, title: string): boolean {
  const expected = title.replace(/\\(["'`\\])/g, "$1").trim();
  if (titles.includes(expected)) return true;
  const pieces = expected.split(placeholder);
  if (pieces.length > 1)
    return pieces.join("").trim().length >= 3 && titles.some((testTitle) => hasInOrder(testTitle, pieces));
  // Runners write the title of the suite before the title of the test, and the values of a case after it.
  const last = titles.at(-1) ?? "";
  return (
    expected.length >= 3 &&
    (last.endsWith(` ${expected}`) || last.startsWith(`${expected}[`) || last.startsWith(`${expected}(`))
  );
}

function hasInOrder(text: string, pieces: readonly string[]): boolean {
  if (!text.startsWith(pieces[0] ?? "") || !text.endsWith(pieces.at(-1) ?? "")) return false;
  let from = 0;
  for (const piece of pieces) {
    const at = text.indexOf(piece, from);
    if (at === -1) return false;
    from = at + piece.length;
  }
  return true;
}
