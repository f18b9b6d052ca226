import type { SpecMetadata } from "../../../protocol/spec-block.ts";
import type { SpecDraft } from "../../adapter.ts";
import type { MarkdownScan } from "../../markdown/scan-markdown.ts";
import { type Segment, segmentsOf } from "../../markdown/segments.ts";
import { mentionsIn } from "../../model/mentions.ts";
import { slugOf } from "../../model/slug.ts";

/** The second-level sections of plan.md; its whole text where it has none. */
export function planBlocks(scan: MarkdownScan, document: { feature: string; folder: string }): SpecDraft[] {
  const segments = segmentsOf(scan, 2);
  const sections = segments.filter((segment) => segment.heading?.level === 2);
  return (sections.length > 0 ? sections : segments).filter(hasContent).map((segment) => ({
    ...toDraft(scan, segment, `fw_d-${document.feature}-plan`),
    spec_type: "design",
    tags: ["fw_d", document.feature, "plan"],
    feature: document.folder,
  }));
}

/** The articles of a constitution: its sections down to the third level. */
export function constitutionBlocks(scan: MarkdownScan): SpecDraft[] {
  const version = /\*\*Version\*\*:[ \t]*([^\s|]+)/.exec(scan.text)?.[1];
  return segmentsOf(scan, 3)
    .filter(hasContent)
    .map((segment) => {
      const draft = toDraft(scan, segment, "fw_d-constitution");
      const metadata = { ...draft.metadata, ...(version !== undefined && { version }) };
      return { ...draft, metadata, spec_type: "constraint", tags: ["fw_d", "constitution"] };
    });
}

/** A heading above other headings that says nothing itself is no block. */
function hasContent(segment: Segment): boolean {
  return segment.says || !segment.hasChildren;
}

function toDraft(
  scan: MarkdownScan,
  segment: Segment,
  idStem: string,
): Omit<SpecDraft, "spec_type" | "tags"> {
  const title = segment.heading?.title || "Introduction";
  const metadata: SpecMetadata = {
    level: segment.heading?.level ?? 0,
    ...(segment.parents.length > 0 && { parents: segment.parents }),
  };
  return {
    id: { kind: "base", value: `${idStem}-${slugOf(title) || "section"}` },
    framework: "fw_d",
    title,
    content: segment.says ? segment.body : title,
    lifecycle: "active",
    priority: "medium",
    metadata,
    span: { start_line: segment.startLine, end_line: segment.endLine },
    links: [],
    mentions: mentionsIn(scan, segment.startLine, segment.endLine),
  };
}
