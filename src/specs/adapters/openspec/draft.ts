import type { SpecMetadata, SpecType } from "../../../protocol/spec-block.ts";
import type { DraftLink, SpecDraft } from "../../adapter.ts";
import type { MarkdownScan } from "../../markdown/scan-markdown.ts";
import { mentionsIn } from "../../model/mentions.ts";
import type { OpenspecDocument } from "./openspec-path.ts";

export interface DraftParts {
  readonly id: string;
  readonly spec_type: SpecType;
  readonly title: string;
  readonly content: string;
  readonly metadata: SpecMetadata;
  readonly from: number;
  readonly to: number;
  readonly links?: readonly DraftLink[];
}

/** What all blocks of OpenSpec have in common. */
export function toDraft(scan: MarkdownScan, document: OpenspecDocument, parts: DraftParts): SpecDraft {
  const { kind, capability, change, archived } = document;
  const names = [capability, change].filter((name) => name !== undefined);
  return {
    id: { kind: "base", value: parts.id },
    framework: "custom",
    spec_type: parts.spec_type,
    title: parts.title,
    content: parts.content,
    tags: ["openspec", ...names, ...(archived ? ["archived"] : [])],
    lifecycle: archived ? "obsolete" : parts.metadata.delta === "removed" ? "deprecated" : "active",
    priority: "medium",
    metadata: {
      tool: "openspec",
      document: kind,
      ...(capability !== undefined && { capability }),
      ...(change !== undefined && { change }),
      ...parts.metadata,
    },
    span: { start_line: parts.from, end_line: parts.to },
    feature: document.folder,
    links: parts.links ?? [],
    mentions: mentionsIn(scan, parts.from, parts.to),
  };
}
