import type { AcceptanceCriterion, EarsEntry } from "../../../protocol/spec-block.ts";
import { columnsBefore } from "../../markdown/characters.ts";
import { lineKinds, lineText, type MarkdownScan } from "../../markdown/scan-markdown.ts";
import { headingsBetween } from "../../markdown/segments.ts";
import { classifyCriterion, isEarsStatement, scenarioCriterion } from "../../model/scenario.ts";
import type { LineRange } from "../../model/task-list.ts";
import { toDottedNumber } from "./kiro-document.ts";
import { isAcceptanceLine, isAcceptanceTitle, type RequirementSection } from "./requirement-sections.ts";

/** The criteria of one requirement, in both shapes of the record; both lists have the same order. */
export interface Criteria {
  readonly acceptance_criteria: readonly AcceptanceCriterion[];
  readonly ears_patterns: readonly EarsEntry[];
}

/**
 * The criteria in the lines of a section: the numbered items below an acceptance label, or the bulleted items if none is
 * numbered. In a requirement without a label, the list items that are EARS statements; in a constraint, those too in addition to
 * the labelled items. In a chapter of criteria, all items.
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
 * The criteria among list items: numbered items and EARS statements, or all items if none is numbered.
 *
 * `number` is the number of the requirement: item 2 of requirement 3 is criterion "3.2", unless the item has a dotted number.
 */
export function criteriaOfItems(items: readonly CriterionItem[], number: string | undefined): Criteria {
  return toCriteria(numberCriteria(keepNumbered(items), number));
}

function keepNumbered(items: readonly CriterionItem[]): readonly CriterionItem[] {
  const isNumbered = items.some((item) => item.number !== undefined);
  return isNumbered ? items.filter((item) => item.number !== undefined || isEars(item)) : items;
}

/** In a list of requirements with codes, each item is a criterion; in a constraint, each item with SHALL. */
function isStatement(item: CriterionItem, kind: RequirementSection["kind"]): boolean {
  if (kind === "list" && isCode(item.number)) return true;
  return /\bSHALL\b/.test(item.text.join(" "));
}

/** Each part of a list counts from 1, so the position among all items is the number. */
function numberInOrder(items: readonly CriterionItem[]): Omit<EarsEntry, "pattern">[] {
  const written = items.map(({ number }) => number);
  const isUnique = written.every((one) => one !== undefined) && new Set(written).size === items.length;
  return items.map((item, index) => {
    const ownNumber = isUnique || isCode(item.number) ? item.number : undefined;
    return { text: item.text.join(" "), line: item.line, number: ownNumber ?? String(index + 1) };
  });
}

function isCode(number: string | undefined): boolean {
  return number !== undefined && /^\p{Lu}/u.test(number);
}

/** The lines of a scenario are joined to one. */
const beforeStep = / (?=(?:[-*+] )?(?:\*\*|__)?(?:given|when|then)\b)/gi;

function toCriteria(criteria: readonly Omit<EarsEntry, "pattern">[]): Criteria {
  const classified = criteria.map((entry) => {
    const classified = classifyCriterion(entry.text);
    const steps =
      classified.pattern === "unclassified"
        ? scenarioCriterion(entry.text.replace(beforeStep, "\n"))
        : undefined;
    return { entry, ...classified, ...steps, pattern: steps?.pattern ?? classified.pattern } as {
      entry: typeof entry;
    } & typeof classified;
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
    const ownNumber = byPosition || item.number === undefined ? String(index + 1) : item.number;
    const isWhole = ownNumber.includes(".") || isCode(ownNumber) || stem === undefined;
    const number = isWhole ? ownNumber : `${stem}.${ownNumber}`;
    return { text: item.text.join(" "), line: item.line, number };
  });
}

/** A list item, or a paragraph that is an EARS statement, with the lines that continue it. */
interface CriterionItem {
  readonly line: number;
  readonly indent: number;
  /** As written, without leading zeros: "2", "1.2", "NFR-1"; absent for bullets and paragraphs. */
  readonly number: string | undefined;
  readonly text: string[];
}

interface CriterionItems {
  /** Items below a label such as `#### Acceptance Criteria`; absent where there is no label. */
  readonly labelled: readonly CriterionItem[] | undefined;
  readonly others: readonly CriterionItem[];
}

const code = "(\\p{Lu}{1,8}(?:[-_]\\p{Lu}{1,12}){0,3}[-_]?\\d{1,6}(?:\\.\\d{1,6})*)";
/** `1.`, `1)`, `1a.`, `1.2`, `1.2.`, `**1.2**`, `AC1:`, `AC-1.2.`, `**Criterion 1:**` in front of a criterion. */
const numberMark =
  /^(?:\*\*|__)?((?:AC|criteri(?:on|a|o)|crit[eé]rio|criterio)[-_ #]?)?(\d{1,9}(?:\.\d{1,9})*(?:[a-z](?=[.):：]))?)([.):：])?(?:\*\*|__)?(?:[.):：]|[ \t]+[–—])?[ \t]+(?=\S)/i;
/** `**NFR-1**:`, `**NFR-2 (Security)**:`, `FR-001:`, `[BR-2]`, `R2.1 WHEN` in front of a statement. */
const codeMark = new RegExp(
  `^(?:(?:\\*\\*|__)${code}(?:[ \\t:：(–—-][^*_]{0,80})?(?:\\*\\*|__)[:：–—-]?|[[\`]${code}[\\]\`][:：–—-]?|${code}(?:[ \\t]*[:：]|[ \\t]+[–—-]|(?=[ \\t]+(?:WHEN|IF|WHILE|WHERE|THE)\\b)))[ \\t]+(?=\\S)`,
  "u",
);
const bulletMark = /^[-*+][ \t]+(?:\[[ xX]\][ \t]+)?(?=\S)/;
/** Steps of a Given/When/Then scenario that do not open one. */
const whenStep = /^(?:[-*+][ \t]+)?(?:\*\*|__)?when\b/i;
const laterStep = /^(?:\*\*|__)?(?:then|and|but)\b/i;

/** Collects the items of a requirement's lines that can be criteria. Linear in the text. */
export function criterionItems(scan: MarkdownScan, lines: LineRange): CriterionItems {
  const headings = new Map(
    headingsBetween(scan, lines.from, lines.to).map((heading) => [heading.line, heading]),
  );
  let labelled: CriterionItem[] | undefined;
  const others: CriterionItem[] = [];
  let reader = itemReader(others);
  for (let line = lines.from; line <= lines.to; line += 1) {
    if (scan.kinds[line - 1] === lineKinds.fence && labelled?.length === 0) {
      const end = endOfFence(scan, line, lines.to);
      labelled.push(...scenariosIn(scan, line, end));
      line = end;
    }
    if (scan.kinds[line - 1] !== lineKinds.prose) continue;
    const heading = headings.get(line);
    const text = lineText(scan, line);
    const isLabel = heading === undefined ? isAcceptanceLine(text) : isAcceptanceTitle(heading.title);
    if (isLabel) labelled ??= [];
    if (isLabel || heading !== undefined) {
      reader = itemReader(isLabel ? (labelled ?? others) : others);
      line = heading?.end_line ?? line;
    } else reader(text, line);
  }
  return { labelled, others };
}

function endOfFence(scan: MarkdownScan, line: number, last: number): number {
  let end = line;
  while (end < last && scan.kinds[end] === lineKinds.fence) end += 1;
  return end;
}

/** The scenarios of a fence marked as Gherkin; without their names, each Given that follows a Then. */
function scenariosIn(scan: MarkdownScan, from: number, to: number): CriterionItem[] {
  if (!/^[ \t]*(?:`{3,}|~{3,})[ \t]*(?:gherkin|feature|cucumber)\b/i.test(lineText(scan, from))) return [];
  const items: CriterionItem[] = [];
  let isOpen = false;
  for (let line = from + 1; line < to; line += 1) {
    const text = lineText(scan, line).trim();
    const opens = /^(?:Scenario(?: Outline| Template)?|Example)\b/i.test(text);
    if (opens || (!isOpen && /^(?:Given|When)\b/i.test(text)))
      items.push({ line, indent: 0, number: undefined, text: [] });
    isOpen = opens || (isOpen ? !/^$/.test(text) : items.at(-1)?.line === line);
    if (text !== "" && !/^(?:Feature|Background|Rule|@|#)/i.test(text)) items.at(-1)?.text.push(text);
  }
  return items.filter((item) => item.text.length > 0);
}

/** Returns a function that reads line after line into `items`. Labelled and other items have a reader each. */
function itemReader(items: CriterionItem[]): (text: string, line: number) => void {
  let current: CriterionItem | undefined;
  let afterBlank = true;
  let lastNumber = 0;
  let rows = 0;
  let inBullets = false;
  return (raw, line) => {
    const text = raw.trim();
    if (text === "") {
      afterBlank = true;
      return;
    }
    const indent = columnsBefore(raw);
    // A table after a list is part of the last item.
    const isRow = text.startsWith("|") && text.endsWith("|") && text.length > 1;
    if (isRow && (rows > 0 || items.length === 0)) {
      rows += 1;
      // The first row names the columns, the second one rules them off.
      if (rows > 2) items.push(rowItem(text, line));
      current = undefined;
      return;
    }
    rows = 0;
    const mark = markOf(text, lastNumber + 1);
    if (mark !== undefined && mark.number === undefined && isGroupOf(current, mark, indent)) items.pop();
    const isInside =
      current !== undefined &&
      indent > current.indent + (current.number === undefined ? 0 : 1) &&
      items.at(-1) === current;
    if (mark !== undefined && !isInside && (inBullets || opensItem(mark, current))) {
      inBullets = mark.isBullet === true;
      current = { line, indent, number: mark.number, text: [mark.rest] };
      const last = Number(mark.number?.slice(mark.number.lastIndexOf(".") + 1));
      if (Number.isInteger(last)) lastNumber = last;
      items.push(current);
    } else if (mark === undefined && afterBlank && (current === undefined || indent <= current.indent)) {
      // A separate paragraph ends the list, unless it is a criterion without a number.
      current = isEarsStatement(text) ? { line, indent, number: undefined, text: [text] } : undefined;
      if (current !== undefined) items.push(current);
    } else {
      current?.text.push(text);
    }
    afterBlank = false;
  };
}

/** A row of a table: its first cell is the number where it holds one. */
function rowItem(text: string, line: number): CriterionItem {
  const cells = text
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim());
  const [first = "", ...rest] = cells;
  const mark = markOf(`${first.replace(/^[*_`]+|[*_`]+$/g, "")}: x`, 0);
  const isNumber = mark?.number !== undefined && mark.rest === "x";
  const words = isNumber ? rest : cells;
  return {
    line,
    indent: 0,
    number: isNumber ? mark.number : undefined,
    text: [words.filter((cell) => cell !== "").join(" – ")],
  };
}

/** A bullet that is only the title of the EARS statements nested in it is not a criterion itself. */
function isGroupOf(current: CriterionItem | undefined, mark: Mark, indent: number): boolean {
  if (current === undefined || current.number !== undefined || indent <= current.indent) return false;
  return isEarsStatement(mark.rest) && !isEarsStatement(current.text.join(" ")) && current.text.length === 1;
}

interface Mark {
  readonly number: string | undefined;
  readonly rest: string;
  /** A code after a bullet is not a number of an ordered list. */
  readonly isBullet?: boolean;
}

/** The list mark of a line. A bare integer counts only where it continues the numbering. */
function markOf(text: string, next: number): Mark | undefined {
  const bullet = bulletMark.exec(text)?.[0] ?? "";
  const behind = text.slice(bullet.length);
  const match = numberMark.exec(behind);
  if (match === null) {
    const [coded = "", ...codes] = codeMark.exec(behind) ?? [];
    const number = codes.find((each) => each !== undefined);
    if (number !== undefined) return { number, rest: behind.slice(coded.length), isBullet: bullet !== "" };
  }
  if (match === null) return bullet === "" ? undefined : { number: undefined, rest: behind };
  const [whole, prefix, digits = "", dot] = match;
  const isNumber =
    prefix !== undefined || dot !== undefined || digits.includes(".") || digits === String(next);
  if (!isNumber) return bullet === "" ? undefined : { number: undefined, rest: behind };
  return { number: toDottedNumber(digits), rest: behind.slice(whole.length) };
}

/** A bullet below a numbered criterion is part of it, unless it states a criterion in full. */
function opensItem(mark: Mark, current: CriterionItem | undefined): boolean {
  if (mark.number !== undefined || current === undefined) return true;
  if (current.number !== undefined) return isEarsStatement(mark.rest);
  const isOpen =
    /^(?:\*\*|__)?given\b/i.test(current.text[0] ?? "") && current.text.every((one) => !whenStep.test(one));
  return !laterStep.test(mark.rest) && !(isOpen && whenStep.test(mark.rest));
}
