import type { SpecMetadata } from "../../../protocol/spec-block.ts";
import type { SpecDraft } from "../../adapter.ts";
import { listItemEnd, listItemText } from "../../markdown/list-item.ts";
import { lineKinds, lineText, type MarkdownScan } from "../../markdown/scan-markdown.ts";
import { blockTitle } from "../../model/block-title.ts";
import { classifyCriterion } from "../../model/ears.ts";
import { joinSpace } from "../../model/join-space.ts";
import { mentionsIn } from "../../model/mentions.ts";
import type { LineRange } from "../../model/task-list.ts";
import { statementId } from "./speckit-path.ts";
import { storyBlocks } from "./story-blocks.ts";

/** `- **FR-001**: …`, also FR-001a, NFR-001, SC-001, with a box or the colon inside the bold; `- FR-001: …`, `- FR-001 - …`; in a numbered list, too. */
const statement =
  /^[ \t]*(?:[-*+]|\d{1,4}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(?:\*\*((?:N?FR|SC)-\d+[A-Za-z]?)\b|((?:N?FR|SC)-\d+[A-Za-z]?)(?=[:：]|[ \t]+[-–—][ \t]))/;

/** The user stories and numbered statements of a spec.md, in the order of the text. */
export function specBlocks(scan: MarkdownScan, document: { feature: string; folder: string }): SpecDraft[] {
  const drafts = [...storyBlocks(scan, document), ...statementBlocks(scan, document)];
  return drafts.sort((one, other) => one.span.start_line - other.span.start_line);
}

function statementBlocks(scan: MarkdownScan, document: { feature: string; folder: string }): SpecDraft[] {
  const drafts: SpecDraft[] = [];
  let heading = 0;
  let section: string | undefined;
  for (let line = scan.bodyLine; line <= scan.lineCount; line += 1) {
    while ((scan.headings[heading]?.line ?? scan.lineCount + 1) <= line) {
      section = scan.headings[heading]?.title || section;
      heading += 1;
    }
    if (scan.kinds[line - 1] !== lineKinds.prose) continue;
    const [, bold, plain] = statement.exec(lineText(scan, line)) ?? [];
    const code = bold ?? plain;
    if (code === undefined) continue;
    const limit = (scan.headings[heading]?.line ?? scan.lineCount + 1) - 1;
    const lines = { from: line, to: listItemEnd(scan, line, limit) };
    drafts.push(toDraft(scan, lines, { code, section, ...document }));
    // A statement may have others nested in it, which are blocks of their own.
  }
  return drafts;
}

function toDraft(
  scan: MarkdownScan,
  lines: LineRange,
  place: { code: string; section: string | undefined; feature: string; folder: string },
): SpecDraft {
  const { code, section, feature, folder } = place;
  const content = listItemText(scan, lines.from, lines.to);
  const kind = code.startsWith("SC") ? "success-criterion" : "functional-requirement";
  const open = /\[NEEDS CLARIFICATION[^\]]*\]/.test(content);
  const metadata: SpecMetadata = {
    requirement: code,
    ...(section !== undefined && { section }),
    ...(open && { needs_clarification: true }),
    ears_patterns: [{ pattern: patternOf(content), text: wordsOf(content), line: lines.from, number: code }],
  };
  return {
    id: { kind: "base", value: statementId(feature, code) },
    framework: "fw_d",
    spec_type: "requirement",
    title: blockTitle(content.replace(/^\*\*([^*]*)\*\*/, "$1")) || code,
    content,
    tags: ["fw_d", feature, kind],
    lifecycle: "active",
    priority: "medium",
    metadata,
    span: { start_line: lines.from, end_line: lines.to },
    feature: folder,
    links: [],
    mentions: mentionsIn(scan, lines.from, lines.to),
  };
}

/** Spec Kit says MUST where EARS says SHALL. */
function patternOf(content: string): ReturnType<typeof classifyCriterion>["pattern"] {
  const { pattern } = classifyCriterion(wordsOf(content));
  return pattern === "unclassified" && /\bMUST\b/.test(content) ? "ubiquitous" : pattern;
}

/** A statement without its number, white space joined. */
function wordsOf(content: string): string {
  return joinSpace(
    content.replace(/^(?:\*\*[^*]*\*\*[ \t]*|(?:N?FR|SC)-\d+[A-Za-z]?(?:[ \t]+[-–—](?=[ \t]))?)[:：]?/, ""),
  );
}
