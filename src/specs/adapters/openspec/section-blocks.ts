import type { SpecDraft } from "../../adapter.ts";
import { type MarkdownScan, textOfLines } from "../../markdown/scan-markdown.ts";
import { withoutBlankEdges } from "../../markdown/sections.ts";
import { type Segment, segmentsOf } from "../../markdown/segments.ts";
import { slugOf } from "../../model/slug.ts";
import { type OpenspecDocument, toDraft } from "./openspec-document.ts";

/** The sections of a design, or of the project's conventions. */
export function sectionBlocks(scan: MarkdownScan, document: OpenspecDocument): SpecDraft[] {
  return segmentsOf(scan, 2)
    .filter((segment) => segment.says)
    .map((segment) => sectionBlock(scan, document, segment));
}

export function sectionBlock(scan: MarkdownScan, document: OpenspecDocument, segment: Segment): SpecDraft {
  const title = segment.heading?.title || "Introduction";
  const part = document.kind === "design" ? "design-" : "";
  return toDraft(scan, document, {
    id: `${document.idStem}-${part}${slugOf(title) || "section"}`,
    spec_type:
      document.kind === "project" ? "constraint" : /^purpose$/i.test(title) ? "requirement" : "design",
    title,
    content: segment.body,
    metadata: {
      level: segment.heading?.level ?? 0,
      ...(segment.parents.length > 0 && { parents: segment.parents }),
    },
    from: segment.startLine,
    to: segment.endLine,
  });
}

/** A proposal is read as a whole: why, what and what it affects. */
export function proposalBlocks(scan: MarkdownScan, document: OpenspecDocument): SpecDraft[] {
  const { from, to } = withoutBlankEdges(scan, scan.bodyLine, scan.lineCount);
  if (to < from) return [];
  const heading = scan.headings.find(({ level }) => level === 1);
  return [
    toDraft(scan, document, {
      id: `${document.idStem}-proposal`,
      spec_type: "requirement",
      title: heading?.title || `Proposal: ${document.change ?? ""}`,
      content: textOfLines(scan, from, to),
      metadata: {},
      from,
      to,
    }),
  ];
}
