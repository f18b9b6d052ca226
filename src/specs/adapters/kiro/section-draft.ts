import type { SpecDraft } from "../../adapter.ts";
import { type MarkdownScan, textOfLines } from "../../markdown/scan-markdown.ts";
import { mentionsIn } from "../../model/mentions.ts";
import type { LineRange } from "../../model/task-list.ts";
import type { KiroDocument } from "./kiro-path.ts";

/** A section that becomes a block. `lines` is its body without blank lines at the edges. */
export interface SectionPart {
  readonly id: string;
  readonly heading: { readonly title: string; readonly line: number; readonly end_line: number };
  readonly lines: LineRange;
}

/** What the blocks of all sections have in common. A section without text is its title. */
export function sectionDraft(
  scan: MarkdownScan,
  { id, heading, lines }: SectionPart,
  document: KiroDocument,
): Omit<SpecDraft, "spec_type" | "metadata"> {
  const title = heading.title || "Untitled";
  return {
    id: { kind: "base", value: id },
    framework: "fw_a",
    title,
    content: textOfLines(scan, lines.from, lines.to) || title,
    tags: ["fw_a", document.feature],
    lifecycle: "active",
    priority: "medium",
    span: { start_line: heading.line, end_line: Math.max(heading.end_line, lines.to) },
    feature: document.folder,
    links: [],
    mentions: mentionsIn(scan, lines.from, lines.to),
  };
}
