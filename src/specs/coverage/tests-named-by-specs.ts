import type { CriterionTest } from "../../protocol/coverage.ts";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import { requirementLabels } from "../adapters/kiro/requirement-references.ts";
import { scanMarkdown } from "../markdown/scan-markdown.ts";
import { type CriteriaIndex, criteriaNamed } from "./criteria-index.ts";
import { featurePathOf } from "./list-criteria.ts";

/** A test file that a spec names for a criterion. */
export interface NamedTest extends CriterionTest {
  /** Index into the list of criteria. */
  readonly criterion: number;
}

/**
 * The tests that the specs themselves name: those a requirement mentions (for the criterion whose text
 * has the path, else for all of the requirement), and those of a finished task, for the criteria that
 * the task names (`_Requirements: 1.2_`).
 */
export function testsNamedBySpecs(index: CriteriaIndex, blocks: Iterable<SpecBlock>): NamedTest[] {
  const named: NamedTest[] = [];
  for (const block of blocks) {
    const tests = block.metadata.test_refs ?? [];
    if (tests.length === 0) continue;
    for (const path of tests) {
      for (const { criterion, isWhole } of criteriaFor(index, block, path)) {
        const test: NamedTest = {
          criterion,
          path,
          line: 1,
          evidence: "path",
          quote: block.title.slice(0, 200),
        };
        named.push(isWhole ? { ...test, whole_requirement: true } : test);
      }
    }
  }
  return named;
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
  const feature = index.featureByPath.get(featurePathOf(block.path));
  if (block.spec_type !== "task" || block.metadata.status !== "done" || feature === undefined) return [];
  const scan = scanMarkdown(block.content);
  const labels = requirementLabels(scan, [{ from: 1, to: scan.lineCount }]);
  // "All" promises too much to be evidence for each criterion of a feature.
  return labels.flatMap(({ names }) => names.flatMap(({ number }) => criteriaNamed(index, feature, number)));
}
