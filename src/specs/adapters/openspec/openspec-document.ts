import type { SpecMetadata, SpecType } from "../../../protocol/spec-block.ts";
import type { DraftLink, SpecDraft } from "../../adapter.ts";
import type { MarkdownScan } from "../../markdown/scan-markdown.ts";
import { mentionsIn } from "../../model/mentions.ts";
import { slugOf } from "../../model/slug.ts";

/** The facts in the path of an OpenSpec document. */
export interface OpenspecDocument {
  readonly kind: "spec" | "delta" | "proposal" | "design" | "tasks" | "project";
  /** The folder whose documents belong together: of a capability or of a change. */
  readonly folder: string;
  /** `openspec-<capability>` or `openspec-change-<change>`, with the capability for a delta. */
  readonly idStem: string;
  readonly capability?: string;
  readonly change?: string;
  /** A change that has been merged into the specs. */
  readonly archived: boolean;
}

const specPath = /^(?<root>(?:.*\/)?openspec)\/specs\/(?<capability>.+)\/(?<kind>spec|design)\.md$/s;
const changePath =
  /^(?<root>(?:.*\/)?openspec)\/changes\/(?<archive>archive\/)?(?<change>[^/]+)\/(?<rest>.+)$/s;
const projectPath = /^(?<root>(?:.*\/)?openspec)\/project\.md$/s;

/** The document at a path; undefined where the path is not one of OpenSpec's. */
export function openspecDocumentOf(path: string): OpenspecDocument | undefined {
  if (!path.endsWith(".md") || !path.includes("openspec/")) return undefined;
  const change = changePath.exec(path)?.groups;
  if (change !== undefined) return changeDocument(change);
  const spec = specPath.exec(path)?.groups;
  if (spec !== undefined) {
    const capability = spec.capability ?? "";
    const folder = `${spec.root}/specs/${capability}`;
    const kind = spec.kind === "design" ? "design" : "spec";
    return { kind, folder, capability, idStem: `openspec-${slugOf(capability)}`, archived: false };
  }
  const project = projectPath.exec(path)?.groups;
  if (project === undefined) return undefined;
  return { kind: "project", folder: project.root ?? "", idStem: "openspec-project", archived: false };
}

function changeDocument(groups: Record<string, string | undefined>): OpenspecDocument | undefined {
  const { root = "", archive = "", change = "", rest = "" } = groups;
  const folder = `${root}/changes/${archive}${change}`;
  const idStem = `openspec-change-${slugOf(change)}`;
  const shared = { folder, change, archived: archive !== "" };
  const capability = /^specs\/(.+)\/spec\.md$/s.exec(rest)?.[1];
  if (capability !== undefined)
    return { kind: "delta", capability, idStem: `${idStem}-${slugOf(capability)}`, ...shared };
  if (rest === "proposal.md") return { kind: "proposal", idStem, ...shared };
  if (rest === "design.md") return { kind: "design", idStem, ...shared };
  return rest === "tasks.md" ? { kind: "tasks", idStem, ...shared } : undefined;
}

/** The base id of a requirement of a capability, as openspec/specs has it. */
export function requirementId(capability: string, name: string): string {
  return `openspec-${slugOf(capability)}-${slugOf(name) || "requirement"}`;
}

interface DraftParts {
  readonly id: string;
  readonly spec_type: SpecType;
  readonly title: string;
  readonly content: string;
  readonly metadata: SpecMetadata;
  readonly from: number;
  readonly to: number;
  readonly links?: readonly DraftLink[];
}

/** The common fields of OpenSpec blocks. */
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
