import { isEarsStatement } from "../../ears.ts";
import { columnsBefore } from "../../markdown/indent.ts";
import { lineKinds, lineText, type MarkdownScan } from "../../markdown/scan-markdown.ts";
import { headingsBetween } from "../../markdown/sections.ts";
import type { LineRange } from "../../task-list.ts";
import { toDottedNumber } from "./dotted-number.ts";
import { isAcceptanceLine, isAcceptanceTitle } from "./labels.ts";

/** A list item, or a paragraph that is an EARS statement, with the lines that continue it. */
export interface CriterionItem {
  readonly line: number;
  readonly indent: number;
  /** As written, without leading zeros: "2", "1.2"; absent for bullets and paragraphs. */
  readonly number: string | undefined;
  readonly text: string[];
}

export interface CriterionItems {
  /** Items below a label such as `#### Acceptance Criteria`; absent where there is no label. */
  readonly labelled: readonly CriterionItem[] | undefined;
  readonly others: readonly CriterionItem[];
}

/** `1.`, `1)`, `1.2`, `1.2.`, `**1.2**`, `AC1:`, `AC-1.2.` in front of a criterion. */
const numberMark =
  /^(?:\*\*|__)?(AC[- ]?)?(\d{1,9}(?:\.\d{1,9})*)([.):：])?(?:\*\*|__)?[.):：]?[ \t]+(?=\S)/i;
const bulletMark = /^[-*+][ \t]+(?:\[[ xX]\][ \t]+)?(?=\S)/;
/** Steps of a Given/When/Then scenario that do not open one. */
const laterStep = /^(?:\*\*|__)?(?:then|and|but)\b/i;

/** Collects what may be a criterion in the lines of a requirement. Linear in the text. */
export function criterionItems(scan: MarkdownScan, lines: LineRange): CriterionItems {
  const headings = new Map(
    headingsBetween(scan, lines.from, lines.to).map((heading) => [heading.line, heading]),
  );
  let labelled: CriterionItem[] | undefined;
  const others: CriterionItem[] = [];
  let reader = itemReader(others);
  for (let line = lines.from; line <= lines.to; line += 1) {
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

/** Reads line after line into `items`; what is behind a label and what is not have a reader each. */
function itemReader(items: CriterionItem[]): (text: string, line: number) => void {
  let current: CriterionItem | undefined;
  let afterBlank = true;
  let lastNumber = 0;
  return (raw, line) => {
    const text = raw.trim();
    if (text === "") {
      afterBlank = true;
      return;
    }
    const indent = columnsBefore(raw);
    const mark = markOf(text, lastNumber + 1);
    const isInside =
      current !== undefined && indent > current.indent + (current.number === undefined ? 0 : 1);
    if (mark !== undefined && !isInside && opensItem(mark, current)) {
      current = { line, indent, number: mark.number, text: [mark.rest] };
      if (mark.number !== undefined) lastNumber = Number(mark.number.slice(mark.number.lastIndexOf(".") + 1));
      items.push(current);
    } else if (mark === undefined && afterBlank && (current === undefined || indent <= current.indent)) {
      // A paragraph of its own ends the list, unless it is a criterion that nobody numbered.
      current = isEarsStatement(text) ? { line, indent, number: undefined, text: [text] } : undefined;
      if (current !== undefined) items.push(current);
    } else {
      current?.text.push(text);
    }
    afterBlank = false;
  };
}

interface Mark {
  readonly number: string | undefined;
  readonly rest: string;
}

/** The list mark of a line. A bare integer counts only where it continues the numbering. */
function markOf(text: string, next: number): Mark | undefined {
  const bullet = bulletMark.exec(text)?.[0] ?? "";
  const behind = text.slice(bullet.length);
  const match = numberMark.exec(behind);
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
  return !laterStep.test(mark.rest);
}
