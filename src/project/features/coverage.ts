import { suggest } from "../../base/error-text.ts";
import { KitError } from "../../base/kit-error.ts";
import { defined } from "../../base/record.ts";
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
import { type CriteriaIndex, indexCriteria } from "../../specs/coverage/criteria-index.ts";
import { type ResolvedReferences, resolveReferences } from "../../specs/coverage/resolve-references.ts";
import { createTitleComparison, type SimilarTitle } from "../../specs/coverage/similar-titles.ts";
import {
  readTestText,
  type TestText,
  type TestTitle,
  testsNamedBySpecs,
} from "../../specs/coverage/test-references.ts";
import { isTestPath } from "../../specs/model/mentions.ts";
import type { Project, RefreshOptions } from "../project.ts";
import { pageList } from "../query/page.ts";
import {
  criterionName,
  digestOfText,
  type ResultSources,
  readSources,
  readTestResults,
  type StoredResult,
  type TestResults,
} from "../results/results-store.ts";
import { createHashes } from "./stale.ts";
import { readFileInside } from "./write-file.ts";

export interface CoverageOptions extends RefreshOptions {
  /** Only criteria of these features, by label (`auth`). */
  readonly features?: readonly string[];
}

/** Test files beyond this are generated, and skipped with a diagnostic. */
const maxTestBytes = 2 * 1024 * 1024;
/** The limit of places that the report lists per criterion. */
const mostTests = 100;

/**
 * Finds the acceptance criteria that a test names, with file and line as evidence.
 *
 * Counts explicit links only (see `CoverageEvidence`); tests with similar words are suggestions. Reads every test file of the
 * project once, in time linear in their size. A test has the result of its last report, found by its title; a renamed test has no
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
  const sources = readSources(project.specs.all());
  const { naming } = sources;
  const index = indexCriteria(sources.criteria);
  const selection = selectFeatures(index, options.features);
  const evidence = new Map<number, CriterionTest[]>();
  const addTest = (criterion: number, test: CriterionTest): void => {
    const tests = evidence.get(criterion);
    if (tests === undefined) evidence.set(criterion, [test]);
    else if (tests.length < mostTests && !isKnown(tests, test)) tests.push(test);
  };
  const namedFeatures = featuresNaming(index, naming);
  const guesses = new Map<number, SimilarTitle[]>();
  const addGuess = (criterion: number, guess: SimilarTitle): void => {
    guesses.set(criterion, [...(guesses.get(criterion) ?? []), guess]);
  };
  for (const { criterion, isClaim, ...test } of testsNamedBySpecs(index, naming)) {
    const { path, line, quote } = test;
    if (isClaim) addGuess(criterion, { path, line, score: 1, text: quote });
    else addTest(criterion, withResult(test, lastResultOf(results.of(project.realPath(path)), undefined)));
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
    const fileResults = results.of(path);
    for (const { criterion, test } of testsOf(resolved, { path, text }))
      addTest(criterion, withResult(test, lastResultOf(fileResults, test.titles)));
    for (const { criterion, line } of resolved.uncertain)
      addGuess(criterion, { path, line, score: guessScore, text: text.quote(line) });
    diagnostics.push(...resolved.dangling.map(({ line, key }) => danglingKey({ path, line, key })));
    titles.push({ path, titles: text.titles, features: resolved.features });
  }

  const missing = index.criteria.flatMap((_, criterion) => (evidence.has(criterion) ? [] : [criterion]));
  const suggestions = createTitleComparison(index.criteria, missing);
  for (const file of titles) suggestions.add(file);
  return buildCoverageReport({
    ...index,
    evidence: await withAges(evidence, { sources, results, root: project.root }),
    suggestions: {
      suggestionsFor: (at) => [...(guesses.get(at) ?? []), ...suggestions.suggestionsFor(at)],
    },
    selection,
    testFiles: paths.length,
    diagnostics,
  });
}

/** The score of a code that is spelled in another way: below that of a title with the same words. */
const guessScore = 0.5;

/**
 * Marks stale results: the test's file, the code of the criterion's block, or the text of the criterion has changed since the result
 * was submitted. Digests decide, because the time of a file changes with every checkout.
 */
async function withAges(
  evidence: ReadonlyMap<number, readonly CriterionTest[]>,
  { sources, results, root }: { sources: ResultSources; results: TestResults; root: string },
): Promise<ReadonlyMap<number, readonly CriterionTest[]>> {
  const hashes = createHashes(root);
  const aged = new Map<number, readonly CriterionTest[]>();
  for (const [at, tests] of evidence) {
    const criterion = sources.criteria.criteria[at];
    const marked: CriterionTest[] = [];
    for (const test of tests) {
      const stale: StaleResult[] = [];
      if (criterion !== undefined && test.result !== undefined) {
        const since = test.result.recorded_at;
        const hasChanged = async (path: string): Promise<boolean> =>
          results.hasChanged(path, { digest: (await hashes(path)) ?? "", since });
        if (await hasChanged(test.path)) stale.push({ cause: "test", path: test.path });
        for (const path of sources.codeOfBlock.get(criterion.spec_id) ?? [])
          if (await hasChanged(path)) stale.push({ cause: "code", path });
        const digest = digestOfText(criterion.text);
        if (results.hasChanged(criterionName(criterion.id), { digest, since }))
          stale.push({ cause: "criterion", path: criterion.path });
      }
      marked.push(stale.length === 0 ? test : { ...test, stale });
    }
    aged.set(at, marked);
  }
  return aged;
}

function withResult(test: CriterionTest, result: LastResult | undefined): CriterionTest {
  return result === undefined ? test : { ...test, result };
}

/** One page of the criteria of a report. */
export function pageCoverage(report: CoverageReport, query: Omit<CoverageQuery, "feature">): CoveragePage {
  const { show = "all", spec, ...page } = query;
  const criteria = report.criteria.filter(
    (criterion) => isShown(criterion, show) && (spec === undefined || criterion.spec_id === spec),
  );
  const about = ["coverage", show, spec, report.by_feature.map(({ feature }) => feature)];
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

/** The features with a block that names a test file, by file. */
export function featuresNaming(
  index: CriteriaIndex,
  naming: ResultSources["naming"],
): ReadonlyMap<string, ReadonlySet<number>> {
  const found = new Map<string, Set<number>>();
  for (const { path, criterion } of testsNamedBySpecs(index, naming)) {
    const features = found.get(path) ?? new Set();
    found.set(path, features.add(index.criteria[criterion]?.feature ?? -1));
  }
  return found;
}

/** Reads the references and titles of a test file; a file that cannot be read is a diagnostic. */
export async function readTest(
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
    const titles = titlesAt(text.titles, line);
    const test: CriterionTest = { path, line, evidence, ...defined({ titles }), quote: text.quote(line) };
    return { criterion, test: isWhole ? { ...test, whole_requirement: true } : test };
  });
}

/** A line that names a criterion twice is one place. */
function isKnown(tests: readonly CriterionTest[], { path, line }: CriterionTest): boolean {
  return tests.some((test) => test.path === path && test.line === line);
}

function danglingKey({ path, line, key }: { path: string; line: number; key: string }): Diagnostic {
  const message = `No spec has the criterion ${key}.`;
  return { severity: "warning", rule: "dangling-reference", code: "criterion_unknown", message, path, line };
}

/** The largest distance, in lines, between a test and a comment above it that belongs to the test. */
const commentReach = 3;

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

/** The titles of the tests at a line; `undefined` for a file without titles. */
export function titlesAt(titles: readonly TestTitle[], line: number): readonly string[] | undefined {
  if (titles.length === 0) return undefined;
  const at = (expected: number): readonly string[] =>
    titles.filter((title) => title.line === expected).map(({ text }) => text);
  const onLine = at(line);
  if (onLine.length > 0) return onLine;
  const next = titles.find((title) => title.line > line);
  if (next !== undefined && next.line - line <= commentReach) return at(next.line);
  const last = titles.findLast((title) => title.line < line);
  return last === undefined ? [] : at(last.line);
}

/** Places where runners put a value in: `%s`, `$name`, `${name}`. */
const placeholder = /%[sdifjopc#$%]|\$\{[^}]{0,100}\}|\$[\w.]{1,100}/;

/** Whether a result is that of a test, or of one inside a suite, of this title as the source has it. */
export function isNamed({ titles }: Pick<StoredResult, "titles">, title: string): boolean {
  const expected = unescaped(title);
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

function unescaped(title: string): string {
  return title.replace(/\\(["'`\\])/g, "$1").trim();
}
