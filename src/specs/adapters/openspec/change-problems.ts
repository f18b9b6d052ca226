import type { Diagnostic } from "../../../protocol/diagnostic.ts";
import type { SpecMetadata } from "../../../protocol/spec-block.ts";
import { slugOf } from "../../model/slug.ts";
import { openspecDocumentOf } from "./openspec-document.ts";

/** As much of a block as the comparison takes. */
export interface OpenspecBlock {
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
      problem(
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
    return [problem(block, "added_exists", message)];
  }
  if (delta === "modified" && existing !== undefined) return droppedScenarios(block, existing);
  if (delta === "renamed") {
    if (existing !== undefined)
      return [
        problem(block, "renamed_exists", `RENAMED to "${requirement}", which exists in ${existing.path}.`),
      ];
    return typeof from !== "string" || current.has(keyOf(block, from))
      ? []
      : [missing(block, "RENAMED", from)];
  }
  if (existing !== undefined || (delta !== "modified" && delta !== "removed")) return [];
  return [missing(block, delta.toUpperCase(), requirement)];
}

function missing(block: OpenspecBlock, word: string, name: string): Diagnostic {
  return problem(
    block,
    "delta_of_nothing",
    `${word} "${name}" is no requirement of the current spec of this capability.`,
  );
}

/** MODIFIED replaces the whole requirement, so a scenario that is not repeated is gone. */
function droppedScenarios(block: OpenspecBlock, existing: OpenspecBlock): Diagnostic[] {
  const kept = new Set(scenarioNames(block.content).map(slugOf));
  const dropped = scenarioNames(existing.content).filter((name) => !kept.has(slugOf(name)));
  if (dropped.length === 0) return [];
  const names = dropped.slice(0, 3).map((name) => `"${name}"`);
  const more = dropped.length > names.length ? ` and ${dropped.length - names.length} more` : "";
  const what = dropped.length === 1 ? "the scenario" : "the scenarios";
  const message = `MODIFIED leaves out ${what} ${names.join(", ")}${more} of ${existing.path}: it replaces the whole requirement.`;
  return [problem(block, "scenarios_dropped", message)];
}

function scenarioNames(content: string): string[] {
  return [...content.matchAll(/^#{4}[ \t]+Scenario:[ \t]*(\S.*?)[ \t]*$/gim)].map(([, name = ""]) => name);
}

function keyOf({ path }: OpenspecBlock, requirement: string): string {
  const document = openspecDocumentOf(path);
  const root = path.slice(0, path.lastIndexOf("openspec/"));
  return `${root}\n${document?.capability ?? ""}\n${slugOf(requirement)}`;
}

function problem({ path, line }: OpenspecBlock, code: string, message: string): Diagnostic {
  return { severity: "warning", rule: "structure", code, message, path, line };
}
