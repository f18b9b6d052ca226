import { defined } from "../../base/record.ts";
import { atOnce, inTurns, type Steps } from "../../base/steps.ts";
import type { CriterionTest } from "../../protocol/coverage.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import { type CriteriaIndex, indexCriteriaInSteps } from "../../specs/coverage/criteria-index.ts";
import { type ResolvedReferences, resolveReferences } from "../../specs/coverage/resolve-references.ts";
import { namedTestsInSteps, type TestText, type TestTitle } from "../../specs/coverage/test-references.ts";
import { isTestPath } from "../../specs/model/mentions.ts";
import { createPauses } from "../pauses.ts";
import type { Project, RefreshOptions } from "../project.ts";
import { indexOf } from "../project-index.ts";
import { type ResultSources, readSourcesInSteps } from "../results/results-store.ts";
import { type KeptFile, readKept } from "./kept-files.ts";

type LinkedProject = Pick<Project, "specs" | "files" | "realPath">;

/** A place in a test file that names a criterion. */
export interface CriterionReference extends Omit<CriterionTest, "result" | "stale"> {
  /** The key of the criterion: `checkout#1.4`. */
  readonly id: string;
  /** The block that holds the criterion. */
  readonly spec_id: string;
}

export interface ReferenceOptions extends RefreshOptions {
  /** Only these test files; others are not read. */
  readonly files?: readonly string[];
  /** Only the criteria of these keys. */
  readonly criteria?: readonly string[];
}

/**
 * Finds the criteria that test files name, in the order of files and lines. kit keeps what a file names in the index, so only files that
 * changed are read. A name that is no test file of the project has no criteria.
 *
 * @example
 * ```ts
 * import { openProject } from "kit";
 * import { namedCriteria } from "kit/project";
 *
 * const project = await openProject({ root: "." });
 * for (const { id, line, titles } of await namedCriteria(project, { files: ["src/cart.test.ts"] }))
 *   console.log(line, id, titles);
 * await project.close();
 * ```
 */
export async function namedCriteria(
  project: LinkedProject,
  { files, criteria, ...options }: ReferenceOptions = {},
): Promise<readonly CriterionReference[]> {
  const { links } = await readTestLinks(project, { ...options, files });
  const { index } = readCriteria(project);
  return links.flatMap((link) =>
    testsIn(link).flatMap(({ criterion, test }) => {
      const { id, spec_id } = index.criteria[criterion] ?? { id: "", spec_id: "" };
      return criteria?.includes(id) === false ? [] : [{ id, spec_id, ...test }];
    }),
  );
}

/** The criteria of a project by all their names; the same value until the index changes. */
export interface ProjectCriteria {
  readonly index: CriteriaIndex;
  readonly sources: ResultSources;
  /** The features with a block that names a test file, by file. */
  readonly namedFeatures: ReadonlyMap<string, ReadonlySet<number>>;
}

/** Reads the criteria of a project once for all questions. */
export function readCriteria(project: Pick<Project, "specs">): ProjectCriteria {
  return indexOf(project).cached("criteria", () => atOnce(criteriaOf(project.specs.all())));
}

/** The longest time, in milliseconds, that reading in steps blocks other work of the process. */
export const stepMs = 8;

/** Reads the criteria of a project as they are while it reads, and lets other work of the process in between. */
export async function readCriteriaInSteps(project: Pick<Project, "specs">): Promise<ProjectCriteria> {
  return await inTurns(criteriaOf(withoutTexts(project.specs.all())), createPauses(stepMs));
}

/** Criteria do not need the texts, which are most of a project. */
function* withoutTexts(blocks: Iterable<SpecBlock>): Generator<SpecBlock> {
  for (const block of blocks) yield { ...block, content: "" };
}

function* criteriaOf(blocks: Iterable<SpecBlock>): Steps<ProjectCriteria> {
  const sources = yield* readSourcesInSteps(blocks);
  const index = yield* indexCriteriaInSteps(sources.criteria);
  const namedFeatures = new Map<string, Set<number>>();
  for (const { path, criterion } of yield* namedTestsInSteps(index, sources.naming)) {
    const features = namedFeatures.get(path) ?? new Set();
    namedFeatures.set(path, features.add(index.criteria[criterion]?.feature ?? -1));
  }
  return { index, sources, namedFeatures };
}

/** A test file, and the criteria that its references name. */
export interface TestLink {
  readonly path: string;
  readonly text: TestText;
  readonly resolved: ResolvedReferences;
}

export interface TestLinks {
  /** In the order of the files. */
  readonly links: readonly TestLink[];
  readonly diagnostics: readonly Diagnostic[];
  /** How many test files the answer is about. */
  readonly count: number;
  readonly kept: ReadonlyMap<string, KeptFile>;
}

/** Reads the test files of a project, or those of `files`, as far as they differ from the index. */
export async function readTestLinks(
  project: LinkedProject,
  {
    files,
    known = readCriteria(project),
    ...options
  }: RefreshOptions & {
    readonly files?: readonly string[] | undefined;
    readonly known?: ProjectCriteria | undefined;
  } = {},
): Promise<TestLinks> {
  const asked = files && new Set(files);
  const names = project.files().filter((path) => isTestPath(path) && asked?.has(path) !== false);
  const paths = [...new Set(names.map(indexOf(project).aliases().realOf))];
  const { index, namedFeatures } = known;
  // Without criteria no test can count, so no test is read.
  const readable = index.criteria.length === 0 ? [] : paths;
  const { files: kept, diagnostics } = await readKept(indexOf(project), readable, options);
  const links: TestLink[] = [];
  const pause = createPauses(stepMs, options.signal);
  for (const path of readable) {
    const text = kept.get(path)?.test;
    if (text !== undefined)
      links.push({ path, text, resolved: resolve(index, { path, text, namedFeatures }) });
    const waiting = pause();
    if (waiting !== undefined) await waiting;
  }
  return { links, diagnostics, count: paths.length, kept };
}

function resolve(
  index: CriteriaIndex,
  file: { readonly path: string; readonly text: TestText } & Pick<ProjectCriteria, "namedFeatures">,
): ResolvedReferences {
  const { path, text, namedFeatures } = file;
  return resolveReferences(index, {
    path,
    references: text.references,
    namedBy: namedFeatures.get(path) ?? [],
  });
}

/** The places of a test file that name criteria. */
export function testsIn({ path, text, resolved }: TestLink): readonly {
  /** Index into the list of criteria. */
  readonly criterion: number;
  readonly test: CriterionTest;
}[] {
  return resolved.namedCriteria.map(({ criterion, line, evidence, isWhole }) => {
    const titles = titlesAt(text.titles, line);
    const quote = text.quotes[line] ?? "";
    const test: CriterionTest = { path, line, evidence, ...defined({ titles }), quote };
    return { criterion, test: isWhole ? { ...test, whole_requirement: true } : test };
  });
}

/** The largest distance, in lines, between a test and a comment above it that belongs to the test. */
const commentReach = 3;

/** The titles of the tests at a line; `undefined` for a file without titles. */
export function titlesAt(titles: readonly TestTitle[], line: number): string[] | undefined {
  if (titles.length === 0) return undefined;
  const at = (expected: number): string[] =>
    titles.filter((title) => title.line === expected).map(({ text }) => text);
  const onLine = at(line);
  if (onLine.length > 0) return onLine;
  const next = titles.find((title) => title.line > line);
  if (next !== undefined && next.line - line <= commentReach) return at(next.line);
  const last = titles.findLast((title) => title.line < line);
  return last === undefined ? [] : at(last.line);
}
