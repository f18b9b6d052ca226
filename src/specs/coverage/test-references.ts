import { atOnce, type Steps } from "../../base/steps.ts";
import type { CriterionTest } from "../../protocol/coverage.ts";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import { splitLines } from "../markdown/characters.ts";
import { type CriteriaIndex, criteriaNamed } from "./criteria-index.ts";
import { featurePathOf } from "./list-criteria.ts";
import { writtenNumbers } from "./written-numbers.ts";

/** A part of a test's text that can name a criterion, a feature or a spec file. */
export type TestReference = { readonly line: number } & (
  | { readonly kind: "key"; readonly name: string; readonly number: string }
  | { readonly kind: "number"; readonly number: string }
  | { readonly kind: "feature"; readonly name: string }
  | { readonly kind: "path"; readonly path: string }
  | { readonly kind: "spec"; readonly id: string }
);

/** The name of one test, as its author wrote it. */
export interface TestTitle {
  readonly line: number;
  readonly text: string;
}

/** A test file, parsed once for all of coverage. Plain data, which the index keeps. */
export interface TestText {
  /** In line order. */
  readonly references: readonly TestReference[];
  readonly titles: readonly TestTitle[];
  /** The lines of references, by their numbers: trimmed, and at most 200 characters. */
  readonly quotes: Readonly<Record<number, string>>;
}

/** `auth#1.2`, `.kiro/specs/auth/requirements.md#1.2`. */
const key =
  /(?<![\p{L}\p{N}_#./@-])([\p{L}\p{N}_.][\p{L}\p{N}_./-]{0,199})#([\p{L}\p{N}][\p{L}\p{N}._-]{0,99})/gu;
const features =
  /(?<![\p{L}\p{N}])(?:feature|spec|capability)[ \t]{0,4}[:=(][ \t]{0,4}["'`]?([^\r\n,;"'`)*]{1,120})/giu;
const paths =
  /(?<![\p{L}\p{N}_./-])(?:\.{0,2}\/){0,20}([\p{L}\p{N}_.@-]{1,100}(?:\/[\p{L}\p{N}_.@()[\]-]{1,100}){1,20})/gu;
const ids = /(?<![\p{L}\p{N}_-])fw_[a-e]-[\p{L}\p{N}.-]{1,200}/gu;

const callTitle =
  /\b(?:it|test|describe|specify|scenario|context|DisplayName)(?:\.\w{1,20}){0,3}[ \t]{0,4}\([ \t\r\n]{0,20}(["'`])((?:(?!\1)[^\\\r\n]|\\.){1,300})\1/g;
/** `test.each([…])("title", …)`, and the same with a table in backticks. */
const caseTitle = /[)`][ \t]{0,4}\([ \t\r\n]{0,20}(["'`])((?:(?!\1)[^\\\r\n]|\\.){1,300})\1[ \t]{0,4},/g;
const functionTitle =
  /\b(?:def|fn|func|fun|void|function)[ \t]{1,4}(?:\([^)\n]{0,80}\)[ \t]{0,4})?`?((?:test|should|it)[_A-Z ][^`(\n]{1,150}|\w{1,150}_test(?=\())/gi;
const rubyTitle =
  /\b(?:it|describe|context|scenario|specify|test)[ \t]{1,4}(["'])([^"'\n]{1,300})\1[ \t]{1,4}do\b/g;
const gherkinTitle = /^[ \t]*(?:Scenario(?: Outline)?|Example):[ \t]*([^\n]{1,300})/gm;

/** Reads the text of a test file. Linear: every pattern has a bounded reach from where it starts. */
export function readTestText(text: string): TestText {
  const { starts, ends } = splitLines(text);
  const lineAt = lineFinder(starts);
  const references = [...referencesOf(text, lineAt)].sort((a, b) => a.line - b.line);
  const titles = [...titlesOf(text, lineAt)].sort((a, b) => a.line - b.line);
  const quotes: Record<number, string> = {};
  for (const { line, kind } of references) {
    // Paths and names of features only tell which feature the others mean.
    if (kind === "path" || kind === "feature") continue;
    const start = starts[line - 1] ?? 0;
    const end = Math.min(ends[line - 1] ?? start, start + 2000);
    quotes[line] ??= text.slice(start, end).trim().slice(0, 200);
  }
  return { references, titles, quotes };
}

function* referencesOf(text: string, lineAt: (offset: number) => number): Generator<TestReference> {
  for (const { index, 1: name = "", 2: written = "" } of text.matchAll(key)) {
    yield { kind: "key", line: lineAt(index), name, number: written.replace(/[._-]+$/, "") };
  }
  for (const { index, number } of writtenNumbers(text)) yield { kind: "number", line: lineAt(index), number };
  for (const { index, 1: name = "" } of text.matchAll(features)) {
    yield { kind: "feature", line: lineAt(index), name: name.trim() };
  }
  for (const { index, 1: path = "" } of text.matchAll(paths))
    yield { kind: "path", line: lineAt(index), path };
  for (const { index, 0: id } of text.matchAll(ids)) yield { kind: "spec", line: lineAt(index), id };
}

function* titlesOf(text: string, lineAt: (offset: number) => number): Generator<TestTitle> {
  for (const { index, 2: title = "" } of text.matchAll(callTitle)) yield { line: lineAt(index), text: title };
  for (const { index, 2: title = "" } of text.matchAll(caseTitle)) yield { line: lineAt(index), text: title };
  for (const { index, 1: title = "" } of text.matchAll(functionTitle))
    yield { line: lineAt(index), text: title };
  for (const { index, 2: title = "" } of text.matchAll(rubyTitle)) yield { line: lineAt(index), text: title };
  for (const { index, 1: title = "" } of text.matchAll(gherkinTitle))
    yield { line: lineAt(index), text: title };
}

/** Finds the 1-based line of an offset; offsets of one pattern come in order, so most look nearby. */
function lineFinder(starts: ArrayLike<number>): (offset: number) => number {
  return (offset) => {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return low + 1;
  };
}

/** A test file that a spec names for a criterion. */
interface NamedTest extends CriterionTest {
  /** Index into the list of criteria. */
  readonly criterion: number;
  /** True if a finished task names the test: whoever does the work ticks the box. */
  readonly isClaim: boolean;
}

/**
 * The tests that the specs themselves name: those a requirement mentions (for the criterion whose text
 * has the path, else for all of the requirement), and, as claims, those of a finished task, for the criteria that
 * the task names (`_Requirements: 1.2_`).
 */
export function testsNamedBySpecs(index: CriteriaIndex, blocks: Iterable<SpecBlock>): NamedTest[] {
  return atOnce(namedTestsInSteps(index, blocks));
}

/** The same, one block at a time. */
export function* namedTestsInSteps(index: CriteriaIndex, blocks: Iterable<SpecBlock>): Steps<NamedTest[]> {
  const namedTests: NamedTest[] = [];
  for (const block of blocks) {
    const tests = block.metadata.test_refs ?? [];
    if (tests.length === 0) continue;
    yield;
    for (const path of tests) {
      for (const { criterion, isWhole } of criteriaFor(index, block, path)) {
        const test: NamedTest = {
          criterion,
          path,
          line: 1,
          evidence: "path",
          quote: block.title.slice(0, 200),
          isClaim: block.spec_type !== "requirement",
        };
        namedTests.push(isWhole ? { ...test, whole_requirement: true } : test);
      }
    }
  }
  return namedTests;
}

function criteriaFor(
  index: CriteriaIndex,
  block: SpecBlock,
  test: string,
): readonly { readonly criterion: number; readonly isWhole: boolean }[] {
  if (block.spec_type === "requirement") {
    const own = index.bySpecId.get(block.id) ?? [];
    const file = test.slice(test.lastIndexOf("/") + 1);
    const exact = own.filter((criterion) => index.criteria[criterion]?.text.includes(file));
    const isWhole = exact.length === 0 && own.length > 1;
    return (exact.length > 0 ? exact : own).map((criterion) => ({ criterion, isWhole }));
  }
  return block.spec_type === "task" && block.metadata.status === "done" ? criteriaOfTask(index, block) : [];
}

/**
 * The criteria that a task names in `metadata.criteria`. The name of a feature that several have means that of the task's own folder.
 */
export function criteriaOfTask(
  index: CriteriaIndex,
  { path, metadata: { criteria = [] } }: Pick<SpecBlock, "path" | "metadata">,
): readonly { readonly criterion: number; readonly isWhole: boolean }[] {
  const own = index.featureByPath.get(featurePathOf(path));
  const ownName = `/${index.features[own ?? -1]?.label.toLowerCase()}`;
  return criteria.flatMap((key) => {
    const at = key.lastIndexOf("#");
    const name = key.slice(0, at).toLowerCase();
    const feature = ownName.endsWith(`/${name}`) ? own : (index.featureByName.get(name) ?? undefined);
    return feature === undefined ? [] : criteriaNamed(index, feature, key.slice(at + 1));
  });
}
