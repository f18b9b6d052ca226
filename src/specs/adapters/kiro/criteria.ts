import type { AcceptanceCriterion, EarsEntry } from "../../../protocol/spec-block.ts";
import type { MarkdownScan } from "../../markdown/scan-markdown.ts";
import { classifyCriterion, isEarsStatement } from "../../model/ears.ts";
import { scenarioCriterion } from "../../model/scenario.ts";
import type { LineRange } from "../../model/task-list.ts";
import { type CriterionItem, criterionItems } from "./criterion-items.ts";
import type { RequirementSection } from "./requirement-sections.ts";

/** The criteria of one requirement, in both shapes of the record; both lists have the same order. */
export interface Criteria {
  readonly acceptance_criteria: readonly AcceptanceCriterion[];
  readonly ears_patterns: readonly EarsEntry[];
}

/**
 * The criteria in the lines of a section: the numbered items below a label that says so, or the bulleted
 * ones where none is numbered. A requirement without a label has those of its list items that are EARS
 * statements, and so has a constraint beside its label. A chapter of criteria has all its items.
 */
export function criteriaOf(scan: MarkdownScan, section: RequirementSection, lines: LineRange): Criteria {
  const { number, kind } = section;
  const { labelled = [], others } = criterionItems(scan, lines);
  if (kind === "requirement")
    return criteriaOfItems(labelled.length > 0 ? labelled : others.filter(isEars), number);
  const stated =
    kind === "shared" ? others : others.filter((item) => isEars(item) || isStatement(item, kind));
  const items = [...labelled, ...stated].sort((one, other) => one.line - other.line);
  if (number !== undefined) return toCriteria(numberCriteria(items, number));
  return toCriteria(numberInOrder(items));
}

/**
 * The criteria among list items: the numbered ones and EARS statements, or all where none is numbered.
 *
 * `number` is that of the requirement: item 2 of requirement 3 is criterion "3.2", unless the item
 * spells out a dotted number itself.
 */
export function criteriaOfItems(items: readonly CriterionItem[], number: string | undefined): Criteria {
  return toCriteria(numberCriteria(keepNumbered(items), number));
}

function keepNumbered(items: readonly CriterionItem[]): readonly CriterionItem[] {
  const isNumbered = items.some((item) => item.number !== undefined);
  return isNumbered ? items.filter((item) => item.number !== undefined || isEars(item)) : items;
}

/** In a list of requirements with codes each is a criterion; a constraint says so with SHALL. */
function isStatement(item: CriterionItem, kind: RequirementSection["kind"]): boolean {
  if (kind === "list" && isCode(item.number)) return true;
  return /\bSHALL\b/.test(item.text.join(" "));
}

/** Lists of several parts count from 1 in each, so the place among all is what tells them apart. */
function numberInOrder(items: readonly CriterionItem[]): Omit<EarsEntry, "pattern">[] {
  const written = items.map(({ number }) => number);
  const isUnique = written.every((one) => one !== undefined) && new Set(written).size === items.length;
  return items.map((item, index) => {
    const own = isUnique || isCode(item.number) ? item.number : undefined;
    return { text: item.text.join(" "), line: item.line, number: own ?? String(index + 1) };
  });
}

function isCode(number: string | undefined): boolean {
  return number !== undefined && /^\p{Lu}/u.test(number);
}

/** The lines of a scenario are joined to one. */
const beforeStep = / (?=(?:[-*+] )?(?:\*\*|__)?(?:given|when|then)\b)/gi;

function toCriteria(criteria: readonly Omit<EarsEntry, "pattern">[]): Criteria {
  const classified = criteria.map((entry) => {
    const own = classifyCriterion(entry.text);
    const steps =
      own.pattern === "unclassified" ? scenarioCriterion(entry.text.replace(beforeStep, "\n")) : undefined;
    return { entry, ...own, ...steps, pattern: steps?.pattern ?? own.pattern } as {
      entry: typeof entry;
    } & typeof own;
  });
  return {
    acceptance_criteria: classified.map(({ pattern, trigger, response }) => ({ pattern, trigger, response })),
    ears_patterns: classified.map(({ entry, pattern }) => ({ pattern, ...entry })),
  };
}

function isEars(item: CriterionItem): boolean {
  return isEarsStatement(item.text.join(" "));
}

/** Lists whose items are all "1." (Markdown counts them itself) or have no number are numbered by position. */
function numberCriteria(
  items: readonly CriterionItem[],
  stem: string | undefined,
): Omit<EarsEntry, "pattern">[] {
  const written = new Set(items.map((item) => item.number));
  const byPosition = items.length > 1 && written.size === 1;
  return items.map((item, index) => {
    const own = byPosition || item.number === undefined ? String(index + 1) : item.number;
    const isWhole = own.includes(".") || isCode(own) || stem === undefined;
    const number = isWhole ? own : `${stem}.${own}`;
    return { text: item.text.join(" "), line: item.line, number };
  });
}
