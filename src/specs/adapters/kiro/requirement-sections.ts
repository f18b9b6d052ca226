import type { Heading, MarkdownScan } from "../../markdown/scan-markdown.ts";
import { lineKinds, lineText } from "../../markdown/scan-markdown.ts";
import { isAcceptanceLine, isAcceptanceTitle, isStoryTitle, requirementNumber } from "./labels.ts";

/** A requirement of a requirements.md: its heading, its own number, and the lines below it. */
export interface RequirementSection {
  readonly heading: Heading;
  readonly number: string | undefined;
  readonly from: number;
  readonly to: number;
}

/**
 * The requirement sections of a document: headings that carry a requirement number in any language,
 * and, outside of those, headings that have acceptance criteria below them. A section ends before
 * the next requirement and before the next heading of its own or a higher level.
 */
export function requirementSections(scan: MarkdownScan): RequirementSection[] {
  const numbers = new Map<Heading, string>();
  for (const heading of scan.headings) {
    const number = requirementNumber(heading.title);
    if (number !== undefined) numbers.set(heading, number);
  }
  const starts = new Set([...numbers.keys(), ...headingsWithCriteria(scan, numbers)]);
  return scan.headings.flatMap((heading, index) => {
    if (!starts.has(heading)) return [];
    const number = numbers.get(heading) ?? leadingNumber(heading.title);
    return [{ heading, number, from: heading.end_line + 1, to: lastLineOf(scan, index, starts) }];
  });
}

/**
 * The last line of the section that a heading opens, where the headings in `starts` open others. Parts
 * of a requirement (its story, its criteria) may have headings of the same level.
 */
export function lastLineOf(scan: MarkdownScan, index: number, starts: ReadonlySet<Heading>): number {
  const level = scan.headings[index]?.level ?? 1;
  for (let at = index + 1; at < scan.headings.length; at += 1) {
    const next = scan.headings[at];
    if (next === undefined) break;
    const closes = next.level < level || (next.level === level && !isPartTitle(next.title));
    if (closes || starts.has(next)) return next.line - 1;
  }
  return scan.lineCount;
}

function isPartTitle(title: string): boolean {
  return isAcceptanceTitle(title) || isStoryTitle(title);
}

/**
 * Unnumbered requirements: the headings right above acceptance criteria that lie in no numbered one.
 * Criteria behind all requirements of their chapter belong to the heading that announces them.
 */
function headingsWithCriteria(scan: MarkdownScan, numbers: ReadonlyMap<Heading, string>): Set<Heading> {
  const found = new Set<Heading>();
  /** The headings that the current line lies in, outermost first. */
  const path: Heading[] = [];
  /** The line of the last requirement; a heading above it is around it, not one itself. */
  let last = 0;
  const addOwner = (label?: Heading): void => {
    const parent = path.at(-1);
    if (path.some((one) => numbers.has(one)) || (parent !== undefined && found.has(parent))) return;
    const owner = parent !== undefined && parent.line > last ? parent : label;
    if (owner === undefined) return;
    found.add(owner);
    last = owner.line;
  };
  let index = 0;
  for (let line = 1; line <= scan.lineCount; line += 1) {
    const heading = scan.headings[index]?.line === line ? scan.headings[index] : undefined;
    if (heading === undefined) {
      const isLabel = scan.kinds[line - 1] === lineKinds.prose && isAcceptanceLine(lineText(scan, line));
      if (isLabel) addOwner();
      continue;
    }
    const isPart = isPartTitle(heading.title);
    // Parts of a requirement may have headings of its own level, so they close only deeper ones.
    while ((path.at(-1)?.level ?? 0) >= heading.level + (isPart ? 1 : 0)) path.pop();
    if (isAcceptanceTitle(heading.title)) addOwner(heading);
    else if (!isPart) path.push(heading);
    if (numbers.has(heading)) last = line;
    index += 1;
    line = heading.end_line;
  }
  return found;
}

/** "2. Login" and "1.3 Logout" number a requirement as well as "Requirement 2" does. */
function leadingNumber(title: string): string | undefined {
  return isAcceptanceTitle(title) ? undefined : /^(\d+(?:\.\d+)*)[.):]?\s/.exec(title)?.[1];
}
