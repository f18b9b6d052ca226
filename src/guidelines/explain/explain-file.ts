import type { AppliedGuideline, ExplainTool, Explanation } from "../../protocol/guideline-query.ts";
import { type GuidelineRecord, nameOf } from "../guideline-record.ts";
import { createGuidelineMatcher, type GuidelineMatch } from "../match/match-guidelines.ts";
import { matches as globMatches, type ToolId, toolInfo } from "../tools/tool-table.ts";
import {
  createImportChain,
  depthOf,
  type ExplainRequest,
  explainAgents,
  explainCopilot,
  explainGemini,
  explainTogether,
  explainZed,
  inReadingOrder,
  isNamed,
  readBy,
  type ToolView,
  toApplied,
} from "./explain-by-table.ts";

/** The views of an explanation without a tool: AGENTS.md by the nearest file, then each tool's own files. */
const everyTool = [
  "agents",
  "fw_c",
  "fw_b",
  "fw_a",
  "copilot",
  "gemini",
  "windsurf",
  "cline",
  "zed",
] as const;

/**
 * Explains which guidelines apply to a file and why, in the order in which a tool reads them, and which rule shadows others.
 * Without a tool, explains all tools in turn and lists a guideline that several tools read once.
 */
export function explainFile(request: ExplainRequest): Explanation {
  const matches = request.matcher.match(request.file);
  const { tool } = request;
  const tools: readonly ExplainTool[] = tool === undefined ? everyTool : [tool];
  const views = tools.map((each) =>
    viewOf(each, request, tool === undefined ? matches.filter(isOwnOf(each)) : matches),
  );
  const samples = matches.filter(({ record }) => record.source_type === "sample").map(toApplied);
  const applied = once([
    ...tools.flatMap((each) => userGuidelines(each, request)),
    ...views.flatMap((view) => view.applied),
    ...(tool === undefined ? samples : []),
  ]);
  const known = new Set(applied.map((each) => each.guideline.id));
  const shadowed = once(views.flatMap((view) => view.shadowed)).filter(
    (each) => !known.has(each.guideline.id),
  );
  const notes = tool === undefined ? [] : limitNotes(tool, applied, request);
  return {
    file: request.file,
    tool,
    applied,
    shadowed,
    tokens: applied.reduce((sum, each) => sum + (isAskedFor(each) ? 0 : each.tokens), 0),
    ...(notes.length > 0 && { notes }),
  };
}

function viewOf(tool: ExplainTool, request: ExplainRequest, matches: readonly GuidelineMatch[]): ToolView {
  switch (tool) {
    case "fw_a":
      return explainKiro(request, matches);
    case "fw_b":
      return explainCursor(matches);
    case "fw_c":
      return explainClaude(request, matches);
    case "copilot":
      return explainCopilot(request, matches);
    case "gemini":
      return explainGemini(request, matches);
    case "windsurf":
    case "cline":
      return explainTogether(tool, matches);
    case "zed":
      return explainZed(matches);
    case "agents":
    case "agents-nearest":
      return explainAgents(request, matches, "nearest");
    case "agents-all":
    case "codex":
      return explainAgents(request, matches, "all");
  }
}

const toolIds: Readonly<Partial<Record<ExplainTool, ToolId>>> = {
  fw_a: "kiro",
  fw_b: "cursor",
  fw_c: "claude",
  codex: "codex",
  copilot: "copilot",
  gemini: "gemini",
  windsurf: "windsurf",
  cline: "cline",
  zed: "zed",
};

/** Files of one tool that other tools read too are listed once, under their own tool. */
function isOwnOf(tool: ExplainTool): (match: GuidelineMatch) => boolean {
  // The view of Claude Code explains why it does not read AGENTS.md, so it gets those records, too.
  return ({ record }) =>
    record.tool === (toolIds[tool] ?? tool) || (tool === "fw_c" && record.tool === "agents");
}

/** Files of the home folder come first: tools read the files of the project after them. */
function userGuidelines(
  tool: ExplainTool,
  { userRecords, file }: ExplainRequest,
): readonly AppliedGuideline[] {
  const id = toolIds[tool];
  const records = id === undefined ? [] : (userRecords?.(id) ?? []);
  return records.length === 0 ? [] : createGuidelineMatcher(records).match(file).map(toApplied);
}

function isAskedFor({ reason }: AppliedGuideline): boolean {
  return reason === "manual" || reason === "auto";
}

function limitNotes(
  tool: ExplainTool,
  applied: readonly AppliedGuideline[],
  { readText }: ExplainRequest,
): readonly string[] {
  const id = toolIds[tool];
  if (id === undefined) return [];
  const { label, limits } = toolInfo(id);
  const files = [...new Set(applied.map(({ guideline, via }) => via ?? guideline.source_file))];
  return limits
    .filter(({ per }) => per === "file")
    .flatMap(({ files: glob, max, unit }) =>
      files.flatMap((path) => {
        const text = globMatches(`**/${glob}`, path) ? readText?.(path) : undefined;
        if (text === undefined) return [];
        const size = unit === "bytes" ? new TextEncoder().encode(text).length : text.length;
        if (size <= max) return [];
        return [`${path} has ${count(size)} ${unit}; ${label} reads the first ${count(max)}.`];
      }),
    );
}

const count = (number: number): string => number.toLocaleString("en");

function once<Entry extends { readonly guideline: { readonly id: string } }>(
  entries: readonly Entry[],
): Entry[] {
  const seen = new Set<string>();
  return entries.filter(({ guideline }) => {
    if (seen.has(guideline.id)) return false;
    seen.add(guideline.id);
    return true;
  });
}

/**
 * Cursor reads rules that always apply, then rules whose globs match, then AGENTS.md and the legacy `.cursorrules`; rules loaded
 * on request come last. Rules of a folder come after those of the folders above it.
 */
function explainCursor(matches: readonly GuidelineMatch[]): ToolView {
  // CLAUDE.md is read by Cursor's command line, and not by the editor, whose view this is.
  const read = readBy("cursor", matches).filter(({ record }) => record.tool !== "claude");
  return { applied: inReadingOrder(read, cursorRankOf).map(toApplied), shadowed: [] };
}

function cursorRankOf(record: GuidelineRecord): number {
  if (nameOf(record).endsWith(".cursorrules")) return 3;
  if (record.tool !== "cursor") return 2;
  return { always: 0, pattern: 1, auto: 4, manual: 5 }[record.inclusion];
}

/**
 * Kiro reads steering that is always included, AGENTS.md of the root, then steering that a pattern includes, each followed by the
 * files that it references; steering loaded on request comes last.
 */
function explainKiro(request: ExplainRequest, matches: readonly GuidelineMatch[]): ToolView {
  const view: ToolView = { applied: [], shadowed: [] };
  const chain = createImportChain(request, {
    maxHops: 1,
    relativeToFile: false,
    limitRule: "File references of a referenced file are not followed.",
    kind: { source_type: "steering", tool: "kiro", imports: "none" },
  });
  for (const match of inReadingOrder(readBy("kiro", matches), kiroRankOf))
    chain.add(toApplied(match), match.record, view);
  return view;
}

function kiroRankOf(record: GuidelineRecord): number {
  if (record.tool !== "kiro") return 1;
  return { always: 0, pattern: 2, auto: 3, manual: 4 }[record.inclusion];
}

/**
 * Claude Code reads the instruction files from the root down to the file's folder, each followed by its imports; no file
 * overrides another. Rules of a folder come after its instruction files.
 */
function explainClaude(request: ExplainRequest, matches: readonly GuidelineMatch[]): ToolView {
  const view: ToolView = { applied: [], shadowed: [] };
  const chain = createImportChain(request, {
    maxHops: 4,
    relativeToFile: true,
    limitRule: "Claude Code follows imports over at most four files.",
    kind: { source_type: "fw_c", tool: "claude", imports: "at" },
  });
  // Since 2.1.277, Claude Code reads AGENTS.md if the project has no instruction file for Claude.
  const hasOwn = matches.some(
    ({ record }) => record.tool === "claude" && !nameOf(record).includes(".claude/rules/"),
  );
  const readsAgents = request.claudeReadsAgents ?? !hasOwn;
  const read = matches
    .filter(({ record }) => record.tool === "claude" || (readsAgents && isNamed(record, "AGENTS.md")))
    .map((match, index) => ({ match, index }));
  read.sort(
    (a, b) =>
      depthOf(a.match.record.scope) - depthOf(b.match.record.scope) ||
      claudeRankOf(a.match.record) - claudeRankOf(b.match.record) ||
      a.index - b.index,
  );
  for (const { match } of read) chain.add(toApplied(match), match.record, view);
  if (!readsAgents) shadowAgents(matches, view);
  return view;
}

/** The order of the files in one folder. */
function claudeRankOf(record: GuidelineRecord): number {
  const name = nameOf(record);
  if (name.endsWith("CLAUDE.local.md")) return 3;
  if (name.includes(".claude/rules/")) return record.inclusion === "always" ? 4 : 5;
  if (record.tool === "agents") return 2;
  return name.endsWith(".claude/CLAUDE.md") ? 1 : 0;
}

function shadowAgents(matches: readonly GuidelineMatch[], view: ToolView): void {
  const reader = view.applied[0]?.guideline.source_file;
  if (reader === undefined) return;
  const applied = new Set(view.applied.map((each) => each.guideline.id));
  for (const match of matches) {
    if (
      match.record.tool !== "agents" ||
      match.record.source_type === "sample" ||
      applied.has(match.record.id)
    )
      continue;
    const rule = "Claude Code reads CLAUDE.md; it reads AGENTS.md where a CLAUDE.md imports it.";
    view.shadowed.push({ ...toApplied(match), shadowed_by: reader, rule });
  }
}
