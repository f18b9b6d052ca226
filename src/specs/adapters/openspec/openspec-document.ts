import type { Diagnostic } from "../../../protocol/diagnostic.ts";
import type { SpecMetadata, SpecType } from "../../../protocol/spec-block.ts";
import type { DraftLink, SpecDraft } from "../../adapter.ts";
import { type MarkdownScan, structureWarning } from "../../markdown/scan-markdown.ts";
import { slugOf } from "../../model/block-title.ts";
import { mentionsIn } from "../../model/mentions.ts";

/** The facts in the path of an OpenSpec document. */
export interface OpenspecDocument {
  readonly kind: "spec" | "delta" | "proposal" | "design" | "tasks" | "project";
  /** The folder of the capability or of the change, whose documents form one feature. */
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

/** The part of the path of a proposed document; lists end with these. */
export const proposedFolder = "openspec/changes/";

export function isProposed(path: string): boolean {
  return `/${path}`.includes(`/${proposedFolder}`);
}

const changeFolder = /(?:^|\/)openspec\/changes\/(?!archive$)[^/]+$/;

/** A folder of an open change that OpenSpec does not know as one. */
export function openspecFolderProblem(path: string, files: readonly string[]): Diagnostic | undefined {
  if (!changeFolder.test(path) || files.length === 0 || files.includes("proposal.md")) return undefined;
  const message = `OpenSpec does not read this change: it has no proposal.md${files.includes("tasks.md") ? "" : " and no tasks.md"}, only ${files.slice(0, 3).join(", ")}.`;
  return structureWarning({ path: `${path}/` }, "change_without_proposal", message);
}

/** The fields of a block that the comparison needs. */
interface OpenspecBlock {
  readonly path: string;
  readonly line: number;
  readonly content: string;
  readonly metadata: SpecMetadata;
}

/**
 * Contradictions between open changes and the specs that they change: MODIFIED text that leaves out scenarios
 * of the requirement it replaces whole, ADDED of what exists, MODIFIED, REMOVED and RENAMED of what does
 * not, and changes without any of these.
 */
export function openspecChangeProblems(blocks: readonly OpenspecBlock[]): Diagnostic[] {
  const current = new Map<string, OpenspecBlock>();
  const changes = new Map<string, { first: OpenspecBlock; hasDelta: boolean }>();
  for (const block of blocks) {
    const document = openspecDocumentOf(block.path);
    if (document === undefined || document.archived) continue;
    const { requirement, delta } = block.metadata;
    if (document.kind === "spec" && typeof requirement === "string")
      current.set(keyOf(block, requirement), block);
    if (document.change === undefined) continue;
    const change = changes.get(document.folder) ?? { first: block, hasDelta: false };
    if (document.kind === "proposal") change.first = block;
    change.hasDelta ||= delta !== undefined;
    changes.set(document.folder, change);
  }
  const without = [...changes.values()].filter(({ hasDelta }) => !hasDelta);
  return [
    ...without.map(({ first }) =>
      structureWarning(
        first,
        "change_without_delta",
        "This change has no ADDED, MODIFIED, REMOVED or RENAMED requirement in its specs folder.",
      ),
    ),
    ...blocks.flatMap((block) => deltaProblems(block, current)),
  ];
}

function deltaProblems(block: OpenspecBlock, current: ReadonlyMap<string, OpenspecBlock>): Diagnostic[] {
  const { requirement, delta, renamed_from: from } = block.metadata;
  const document = openspecDocumentOf(block.path);
  if (document?.kind !== "delta" || document.archived || typeof requirement !== "string") return [];
  const existing = current.get(keyOf(block, requirement));
  if (delta === "added" && existing !== undefined) {
    const message = `ADDED "${requirement}" exists in ${existing.path}, line ${existing.line}: a change of it is MODIFIED.`;
    return [structureWarning(block, "added_exists", message)];
  }
  if (delta === "modified" && existing !== undefined) return droppedScenarios(block, existing);
  if (delta === "renamed") {
    if (existing !== undefined)
      return [
        structureWarning(
          block,
          "renamed_exists",
          `RENAMED to "${requirement}", which exists in ${existing.path}.`,
        ),
      ];
    return typeof from !== "string" || current.has(keyOf(block, from))
      ? []
      : [missing(block, "RENAMED", from)];
  }
  if (existing !== undefined || (delta !== "modified" && delta !== "removed")) return [];
  return [missing(block, delta.toUpperCase(), requirement)];
}

function missing(block: OpenspecBlock, word: string, name: string): Diagnostic {
  return structureWarning(
    block,
    "delta_of_nothing",
    `${word} "${name}" is not a requirement of the current spec of this capability.`,
  );
}

/** MODIFIED replaces the whole requirement, so a scenario that is not repeated is gone. */
function droppedScenarios(block: OpenspecBlock, existing: OpenspecBlock): Diagnostic[] {
  const presentNames = new Set(scenarioNames(block.content).map(slugOf));
  const dropped = scenarioNames(existing.content).filter((name) => !presentNames.has(slugOf(name)));
  if (dropped.length === 0) return [];
  const names = dropped.slice(0, 3).map((name) => `"${name}"`);
  const more = dropped.length > names.length ? ` and ${dropped.length - names.length} more` : "";
  const what = dropped.length === 1 ? "the scenario" : "the scenarios";
  const message = `MODIFIED leaves out ${what} ${names.join(", ")}${more} of ${existing.path}: it replaces the whole requirement.`;
  return [structureWarning(block, "scenarios_dropped", message)];
}

function scenarioNames(content: string): string[] {
  return [...content.matchAll(/^#{4}[ \t]+Scenario:[ \t]*(\S.*?)[ \t]*$/gim)].map(([, name = ""]) => name);
}

function keyOf({ path }: OpenspecBlock, requirement: string): string {
  const document = openspecDocumentOf(path);
  const root = path.slice(0, path.lastIndexOf("openspec/"));
  return `${root}\n${document?.capability ?? ""}\n${slugOf(requirement)}`;
}
