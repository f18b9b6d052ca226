import { KitError } from "../../base/kit-error.ts";
import { type ProjectCriteria, readCriteria, titlesAt } from "../../project/features/criteria-links.ts";
import type { Project } from "../../project/project.ts";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import type { ChangedSpec } from "../../protocol/spec-query.ts";
import type { CriteriaIndex } from "../../specs/coverage/criteria-index.ts";
import { resolveReferences } from "../../specs/coverage/resolve-references.ts";
import {
  criteriaOfTask,
  readTestText,
  type TestText,
  testsNamedBySpecs,
} from "../../specs/coverage/test-references.ts";
import { isTestPath } from "../../specs/model/mentions.ts";

/** A place in a test file that names a criterion. */
export interface NamingTest {
  readonly path: string;
  readonly line: number;
  /** The titles of the tests at the place; `undefined` if kit finds no titles in the file. */
  readonly titles: readonly string[] | undefined;
  /** The lines of the test: it changed if they did. */
  readonly text: string;
  /** Whether the place names only the requirement that the criterion is part of. */
  readonly isWhole: boolean;
}

/** The texts from which the criteria of a change are chosen. */
export interface ChangeTexts {
  /** By path, relative to the project root: the changed files before and after; absent on the side that lacks them. */
  readonly before: ReadonlyMap<string, string>;
  readonly after: ReadonlyMap<string, string>;
  /** The changed files. */
  readonly paths: readonly string[];
}

export interface ChosenCriterion {
  /** Index into the list of criteria. */
  readonly criterion: number;
  /** Whether the change claims to do it: it ticks a task, or the caller names the task or the criterion. */
  readonly isClaimed: boolean;
}

type TestsByCriterion = ReadonlyMap<number, readonly NamingTest[]>;

export interface CriteriaChoice {
  /** Only this feature, by its label. */
  readonly feature?: string | undefined;
  /** The criteria of this task: its id, or its number in the feature. */
  readonly task?: string | undefined;
  /** Exactly these, by their keys. */
  readonly criteria?: readonly string[] | undefined;
}

/** The criteria of a project, and the changed and unchanged tests that name them. */
export class CriteriaOfChange {
  readonly index: CriteriaIndex;
  readonly #project: Pick<Project, "specs" | "files" | "realPath">;
  readonly #texts: ChangeTexts;
  readonly #read = new Map<string, { readonly text: string; readonly namingTests: TestsByCriterion }[]>();
  readonly #criteria: ProjectCriteria;

  constructor(project: Pick<Project, "specs" | "files" | "realPath">, texts: ChangeTexts) {
    this.#project = project;
    this.#texts = texts;
    this.#criteria = readCriteria(project);
    this.index = this.#criteria.index;
  }

  /** The criteria to judge. Throws `invalid_request` for a feature, task or criterion that the specs do not have. */
  choose({ feature, task, criteria }: CriteriaChoice): readonly ChosenCriterion[] {
    const inFeature = this.#featureFilter(feature);
    const claimed = new Set(
      criteria?.map((key) => this.#criterion(key)) ??
        (task === undefined ? this.#ofTickedTasks() : this.#ofTask(task, feature)),
    );
    const isExact = criteria !== undefined || task !== undefined;
    return [...new Set([...claimed, ...(isExact ? [] : this.#affected())])]
      .filter((criterion) => isExact || inFeature(criterion))
      .sort((one, other) => one - other)
      .map((criterion) => ({ criterion, isClaimed: claimed.has(criterion) }));
  }

  /** The tests in the text of a test file that name criteria, by criterion. */
  testsNaming(path: string, text: string): TestsByCriterion {
    const known = this.#read.get(path) ?? [];
    const found = known.find((one) => one.text === text)?.namingTests;
    if (found !== undefined) return found;
    const namingTests = this.#findTests(path, text);
    this.#read.set(path, [...known, { text, namingTests }]);
    return namingTests;
  }

  #findTests(path: string, text: string): TestsByCriterion {
    const read = readTestText(text);
    const { namedCriteria } = resolveReferences(this.index, {
      path,
      references: read.references,
      namedBy: this.#criteria.namedFeatures.get(path) ?? [],
    });
    const lines = text.split("\n");
    const namingTests = namedCriteria.map(({ criterion, line, isWhole }) => ({
      criterion,
      place: { path, line, titles: titlesAt(read.titles, line), text: testAt(read, lines, line), isWhole },
    }));
    return new Map(
      [...Map.groupBy(namingTests, ({ criterion }) => criterion)].map(([criterion, all]) => [
        criterion,
        all.map(({ place }) => place),
      ]),
    );
  }

  /** Test files that a requirement names for a criterion, in a spec file that the change leaves alone. */
  filesNamedFor(criterion: number): readonly string[] {
    return testsNamedBySpecs(this.index, this.#criteria.sources.naming).flatMap((test) =>
      test.criterion === criterion && !test.isClaim && !this.#texts.paths.includes(this.#pathOf(criterion))
        ? [this.#project.realPath(test.path)]
        : [],
    );
  }

  /** Whether the change is also one of a criterion's text. */
  hasChangedText(criterion: number): boolean {
    const before = this.#texts.before.get(this.#pathOf(criterion));
    if (!this.#texts.paths.includes(this.#pathOf(criterion))) return false;
    return before === undefined || !flat(before).includes(flat(this.index.criteria[criterion]?.text ?? ""));
  }

  #pathOf(criterion: number): string {
    return this.index.criteria[criterion]?.path ?? "";
  }

  #featureFilter(name: string | undefined): (criterion: number) => boolean {
    if (name === undefined) return () => true;
    const feature = this.index.featureByName.get(name.toLowerCase());
    if (feature === undefined || feature === null)
      throw unknown(
        `No feature ${JSON.stringify(name)} has acceptance criteria.`,
        "kit specs coverage lists the features.",
      );
    return (criterion) => this.index.criteria[criterion]?.feature === feature;
  }

  #criterion(key: string): number {
    const found = this.index.criteria.findIndex(({ id }) => id === key);
    if (found === -1)
      throw unknown(
        `No spec has the criterion ${JSON.stringify(key)}.`,
        "kit specs coverage --all lists them.",
      );
    return found;
  }

  /** The criteria whose text or test changed. */
  *#affected(): Generator<number> {
    for (const [criterion] of this.index.criteria.entries())
      if (this.hasChangedText(criterion)) yield criterion;
    for (const path of this.#texts.paths.filter((one) => isTestPath(one))) {
      const after = this.testsNaming(path, this.#texts.after.get(path) ?? "");
      const before = this.testsNaming(path, this.#texts.before.get(path) ?? "");
      for (const [criterion, namingTests] of after) {
        const old = new Set(before.get(criterion)?.map(({ text }) => text));
        if (namingTests.some(({ text, isWhole }) => !isWhole && !old.has(text))) yield criterion;
      }
      // A criterion that lost a test is judged, too.
      for (const criterion of before.keys()) if (!after.has(criterion)) yield criterion;
    }
  }

  /** The criteria of the tasks that the change ticks. */
  #ofTickedTasks(): readonly number[] {
    return [...this.#tickedTasks()].flatMap((block) =>
      criteriaOfTask(this.index, block).map(({ criterion }) => criterion),
    );
  }

  *#tickedTasks(): Generator<SpecBlock> {
    const changed = new Map<string, ChangedSpec>();
    for (const path of this.#texts.paths) {
      const before = this.#texts.before.get(path);
      if (this.#project.specs.frameworkOf(path) === undefined) continue;
      for (const spec of this.#project.specs.compare(path, before ?? "") ?? []) changed.set(spec.id, spec);
    }
    for (const block of this.#project.specs.all()) {
      const change = changed.get(block.id);
      if (change === undefined || block.spec_type !== "task" || block.metadata.status !== "done") continue;
      if (change.change === "added" || change.what.some((what) => /^status .* → done$/.test(what)))
        yield block;
    }
  }

  #ofTask(task: string, feature: string | undefined): readonly number[] {
    const number = task.split("/").at(-1) ?? task;
    const inFeature = feature === undefined ? undefined : this.index.featureByName.get(feature.toLowerCase());
    const featurePath = inFeature == null ? undefined : this.index.features[inFeature]?.path;
    const tasks = [...this.#project.specs.all()].filter(
      (block) =>
        block.spec_type === "task" &&
        (block.id === task ||
          (block.metadata.number === number &&
            featurePath !== undefined &&
            block.path.startsWith(featurePath))),
    );
    const [only, another] = tasks;
    if (only === undefined)
      throw unknown(
        `No task ${JSON.stringify(task)} was found${feature === undefined ? "" : ` in ${feature}`}.`,
        feature === undefined
          ? "Name its feature, too: kit specs verify checkout --task 3. kit specs list --type task lists the ids."
          : "kit specs list --type task lists the ids.",
      );
    if (another !== undefined)
      throw unknown(
        `Several tasks are called ${JSON.stringify(task)}.`,
        "Name the task by its id: kit specs list --type task.",
      );
    return criteriaOfTask(this.index, only).map(({ criterion }) => criterion);
  }
}

/** The lines of the test at a line: its title with a comment above it, and what is indented below, to the end of the block. */
function testAt({ titles }: TestText, lines: readonly string[], line: number): string {
  const next = titles.find((title) => title.line >= line && title.line - line <= 3);
  const start = next?.line ?? titles.findLast((title) => title.line <= line)?.line ?? line;
  const indent = indentOf(lines[start - 1] ?? "");
  let end = start;
  while (end < lines.length && (lines[end]?.trim() === "" || indentOf(lines[end] ?? "") > indent)) end += 1;
  if (/^\s*(?:[)}\]]|end\b)/.test(lines[end] ?? "")) end += 1;
  return lines
    .slice(Math.min(line, start) - 1, Math.max(end, line))
    .join("\n")
    .trim();
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

function flat(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

function unknown(message: string, hint: string): KitError {
  return new KitError({ code: "invalid_request", message, hint });
}
