import type { AcceptanceCriterion, EarsEntry } from "../../../protocol/spec-block.ts";
import { classifyCriterion, isEarsStatement } from "../../ears.ts";
import type { MarkdownScan } from "../../markdown/scan-markdown.ts";
import type { LineRange } from "../../task-list.ts";
import { type CriterionItem, criterionItems } from "./criterion-items.ts";
import { isAcceptanceTitle } from "./labels.ts";
import type { RequirementSection } from "./requirement-sections.ts";

/** The criteria of one requirement, in both shapes of the record; both lists have the same order. */
export interface Criteria {
  readonly acceptance_criteria: readonly AcceptanceCriterion[];
  readonly ears_patterns: readonly EarsEntry[];
}

/**
 * The criteria in the lines of a requirement: the numbered items below a label that says so, or the
 * bulleted ones where none is numbered. A requirement without a label has those of its list items
 * that are EARS statements.
 */
export function criteriaOf(scan: MarkdownScan, section: RequirementSection, lines: LineRange): Criteria {
  const { heading, number } = section;
  const { labelled, others } = criterionItems(scan, lines);
  const isLabel = number === undefined && isAcceptanceTitle(heading.title);
  return criteriaOfItems(labelled ?? (isLabel ? others : others.filter(isEars)), number);
}

/**
 * The criteria among list items: the numbered ones and EARS statements, or all where none is numbered.
 *
 * `number` is that of the requirement: item 2 of requirement 3 is criterion "3.2", unless the item
 * spells out a dotted number itself.
 */
export function criteriaOfItems(items: readonly CriterionItem[], number: string | undefined): Criteria {
  const isNumbered = items.some((item) => item.number !== undefined);
  const kept = isNumbered ? items.filter((item) => item.number !== undefined || isEars(item)) : items;
  return toCriteria(numberCriteria(kept, number));
}

function toCriteria(criteria: readonly Omit<EarsEntry, "pattern">[]): Criteria {
  const classified = criteria.map((entry) => ({ entry, ...classifyCriterion(entry.text) }));
  return {
    acceptance_criteria: classified.map(({ pattern, trigger, response }) => ({ pattern, trigger, response })),
    ears_patterns: classified.map(({ entry, pattern }) => ({ pattern, ...entry })),
  };
}

function isEars(item: CriterionItem): boolean {
  return isEarsStatement(item.text.join(" "));
}

/** Lists whose items all say "1." (Markdown counts them itself), or nothing, are numbered by position. */
function numberCriteria(
  items: readonly CriterionItem[],
  stem: string | undefined,
): Omit<EarsEntry, "pattern">[] {
  const written = new Set(items.map((item) => item.number));
  const byPosition = items.length > 1 && written.size === 1;
  return items.map((item, index) => {
    const own = byPosition || item.number === undefined ? String(index + 1) : item.number;
    const number = own.includes(".") || stem === undefined ? own : `${stem}.${own}`;
    return { text: item.text.join(" "), line: item.line, number };
  });
}
