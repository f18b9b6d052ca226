import { lineKinds, lineText, type MarkdownScan, textOfLines } from "../../markdown/scan-markdown.ts";
import { isConstraintTitle, isStoryTitle } from "./labels.ts";
import {
  chapterNumber,
  isStatementItem,
  lastLineOf,
  type RequirementSection,
  type RequirementSections,
} from "./requirement-sections.ts";

/** A list item or row that a code of a requirement opens, such as `- **FR-1**: …` or `| REQ-02 | …`. */
const codedStatement =
  /^[ \t]*(?:[-*+][ \t]+|\d{1,4}[.)][ \t]+|\|[ \t]*)(?:\[[ xX]\][ \t]+)?(?:\*\*|__)?(?:N?FR|REQ|R?N?F|BR|UR|TR)[-_ ]?(?:[A-Z]{1,12}[-_])?\d+(?:\.\d+)*(?:\*\*|__|[ \t]*[:：.)|–—-])/;

/**
 * The sections outside of the requirement sections that state something for all of them: non-functional
 * requirements and constraints by their title, and lists of statements in EARS or with codes.
 */
export function otherSections(scan: MarkdownScan, found: RequirementSections): RequirementSection[] {
  const ends = new Map(found.sections.map(({ heading, to }) => [heading, to]));
  const starts = new Set(ends.keys());
  const sections: RequirementSection[] = [];
  let taken = 0;
  for (const [index, heading] of scan.headings.entries()) {
    taken = Math.max(taken, ends.get(heading) ?? 0);
    if (heading.line <= taken) continue;
    const from = heading.end_line + 1;
    if (isStoryTitle(heading.title)) continue;
    const isConstraint = isConstraintTitle(heading.title);
    if (
      !isConstraint &&
      !hasStatements(scan, from, (scan.headings[index + 1]?.line ?? scan.lineCount + 1) - 1)
    )
      continue;
    taken = lastLineOf(scan, index, { starts, parts: found.parts });
    // In a document without other requirements, "2. Orders" is the second one.
    const number = found.sections.length === 0 ? chapterNumber(heading.title) : undefined;
    if (textOfLines(scan, from, taken).trim() === "") continue;
    const kind = isConstraint ? "constraint" : "list";
    sections.push({ heading, number: kind === "list" ? number : undefined, kind, from, to: taken });
  }
  return sections;
}

function hasStatements(scan: MarkdownScan, from: number, to: number): boolean {
  for (let line = from; line <= to; line += 1) {
    if (scan.kinds[line - 1] !== lineKinds.prose) continue;
    const text = lineText(scan, line);
    if (codedStatement.test(text) || isStatementItem(text)) return true;
  }
  return false;
}
