import type { AppliedGuideline, ExplainTool, Explanation } from "../../protocol/guideline-query.ts";
import { createGuidelineMatcher, type GuidelineMatch } from "../match/guideline-matcher.ts";
import { matches as globMatches, toolInfo } from "../tools/tool-reads.ts";
import type { ToolId } from "../tools/tool-table.ts";
import { explainAgents } from "./explain-agents.ts";
import { explainCopilot, explainGemini, explainTogether, explainZed } from "./explain-by-table.ts";
import { explainClaude } from "./explain-claude.ts";
import { explainCursor } from "./explain-cursor.ts";
import { explainKiro } from "./explain-kiro.ts";
import { type ExplainRequest, type ToolView, toApplied } from "./explain-request.ts";

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
 * What applies to a file, in the order in which a tool reads it, why, and what is shadowed by which
 * rule. Without a tool, one tool after another; what several of them read comes once.
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
    ...(tool !== undefined && { tool }),
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

/** Files of one tool that others read too are told once, by their own. */
function isOwnOf(tool: ExplainTool): (match: GuidelineMatch) => boolean {
  // Claude Code says of AGENTS.md that it does not read it, so it is asked about that, too.
  return ({ record }) =>
    record.tool === (toolIds[tool] ?? tool) || (tool === "fw_c" && record.tool === "agents");
}

/** The person's own files come first: those of the project are read after them. */
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
