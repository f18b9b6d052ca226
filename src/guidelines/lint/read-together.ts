import type { GuidelineTool } from "../adapter.ts";
import { type GuidelineRecord, isWithin, nameOf, viewsOf } from "../guideline-record.ts";
import { readIndex, type ToolId, toolTable } from "../tools/tool-table.ts";

/** Pairs of files that a tool's row lists, but of which it reads only one. */
const alternatives: Partial<Record<ToolId, readonly GuidelineTool[]>> = {
  // Without a CLAUDE.md, Claude Code reads AGENTS.md; Cursor's command line alone reads CLAUDE.md.
  claude: ["claude", "agents"],
  cursor: ["cursor", "agents"],
  // Copilot takes CLAUDE.md or GEMINI.md in place of AGENTS.md.
  copilot: ["copilot", "agents"],
};

/**
 * Whether one tool reads both guidelines for some file, so that a copy costs its context twice. `importersOf` are the files that
 * import a file.
 */
export function isReadTogether(
  one: GuidelineRecord,
  other: GuidelineRecord,
  importersOf: (path: string) => ReadonlySet<string>,
): boolean {
  if (!isWithin(one.scope, other.scope) && !isWithin(other.scope, one.scope) && one.scope !== other.scope)
    return false;
  if (one.source_file === other.source_file) return true;
  return toolTable.some(({ id, readsOne }) => {
    if (readsOne) return false;
    const [first, second] = [kindsReadBy(id, one, importersOf), kindsReadBy(id, other, importersOf)];
    return [...first].some((kind) => [...second].some((rival) => areCombined(id, kind, rival)));
  });
}

/** The kinds of files under which a tool reads a guideline: by its names, and by the files that import it. */
function kindsReadBy(
  tool: ToolId,
  record: GuidelineRecord,
  importersOf: (path: string) => ReadonlySet<string>,
): ReadonlySet<GuidelineTool> {
  const kinds = new Set<GuidelineTool>();
  for (const view of viewsOf(record)) if (readIndex(tool, nameOf(view)) !== -1) kinds.add(view.tool);
  // An imported file is read as a part of its importer.
  for (const importer of importersOf(record.source_file))
    if (tool === "claude" && readIndex(tool, importer) !== -1) kinds.add("claude");
  return kinds;
}

function areCombined(tool: ToolId, kind: GuidelineTool, rival: GuidelineTool): boolean {
  const listed = alternatives[tool];
  if (listed === undefined || kind === rival) return true;
  const [main, instead] = listed;
  // Only the tool's own files and AGENTS.md are sure; Claude Code reads the latter instead of its own.
  const isSure = (one: GuidelineTool): boolean => one === main || (one === instead && tool !== "claude");
  return isSure(kind) && isSure(rival);
}
