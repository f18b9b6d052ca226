import type { ExplainTool, Explanation } from "../../protocol/guideline-query.ts";
import type { GuidelineMatch } from "../guideline-matcher.ts";
import { explainAgents } from "./explain-agents.ts";
import { explainClaude } from "./explain-claude.ts";
import { explainCursor } from "./explain-cursor.ts";
import { explainKiro } from "./explain-kiro.ts";
import { type ExplainRequest, type ToolView, toApplied } from "./explain-request.ts";

/**
 * What applies to a file, in the order in which a tool reads it, why, and what is shadowed by which
 * rule. Without a tool, one tool after another; what several of them read comes once.
 */
export function explainFile(request: ExplainRequest): Explanation {
  const matches = request.matcher.match(request.file);
  const views =
    request.tool === undefined
      ? (["agents", "fw_c", "fw_b", "fw_a"] as const).map((tool) => viewOf(tool, request, matches))
      : [viewOf(request.tool, request, matches)];
  const samples = matches.filter(({ record }) => record.source_type === "sample").map(toApplied);
  const applied = once([
    ...views.flatMap((view) => view.applied),
    ...(request.tool === undefined ? samples : []),
  ]);
  const known = new Set(applied.map((each) => each.guideline.id));
  const shadowed = once(views.flatMap((view) => view.shadowed)).filter(
    (each) => !known.has(each.guideline.id),
  );
  return {
    file: request.file,
    ...(request.tool !== undefined && { tool: request.tool }),
    applied,
    shadowed,
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
    case "agents":
    case "agents-nearest":
      return explainAgents(request, matches, "nearest");
    case "agents-all":
      return explainAgents(request, matches, "all");
  }
}

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
