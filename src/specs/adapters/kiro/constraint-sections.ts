import { type MarkdownScan, textOfLines } from "../../markdown/scan-markdown.ts";
import { lastLineOf, type RequirementSection } from "./requirement-sections.ts";

const constraintTitle =
  /\bnon[- ]?functional\b|\bconstraints?\b|\blimitations?\b|\bquality attributes?\b|非機能|制約|非功能|约束|約束|비기능|제약/i;

/**
 * The sections that limit all requirements of a document (non-functional requirements, constraints),
 * outside of the requirement sections themselves.
 */
export function constraintSections(
  scan: MarkdownScan,
  requirements: readonly RequirementSection[],
): RequirementSection[] {
  const ends = new Map(requirements.map(({ heading, to }) => [heading, to]));
  const starts = new Set(ends.keys());
  const sections: RequirementSection[] = [];
  let taken = 0;
  for (const [index, heading] of scan.headings.entries()) {
    taken = Math.max(taken, ends.get(heading) ?? 0);
    if (heading.line <= taken || !constraintTitle.test(heading.title)) continue;
    taken = lastLineOf(scan, index, starts);
    const from = heading.end_line + 1;
    if (textOfLines(scan, from, taken).trim() === "") continue;
    sections.push({ heading, number: undefined, from, to: taken });
  }
  return sections;
}
