import { type GuidelineRecord, nameOf } from "../guideline-record.ts";
import type { GuidelineMatch } from "../match/guideline-matcher.ts";
import { isNamed } from "./explain-by-table.ts";
import { depthOf, type ExplainRequest, type ToolView, toApplied } from "./explain-request.ts";
import { createImportChain } from "./import-chain.ts";

/**
 * Claude Code: the instruction files from the root down to the file's folder, one after another, each
 * followed by its imports; none overrides another. Rules of a folder come after its instruction files.
 *
 * @see FORMATS.md, Claude Code
 */
export function explainClaude(request: ExplainRequest, matches: readonly GuidelineMatch[]): ToolView {
  const view: ToolView = { applied: [], shadowed: [] };
  const chain = createImportChain(request, {
    maxHops: 4,
    relativeToFile: true,
    limitRule: "Claude Code follows imports over at most four files.",
    kind: { source_type: "fw_c", tool: "claude", imports: "at" },
  });
  // Since 2.1.277 it reads AGENTS.md where the project has no instruction file of its own.
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
      rankOf(a.match.record) - rankOf(b.match.record) ||
      a.index - b.index,
  );
  for (const { match } of read) chain.add(toApplied(match), match.record, view);
  if (!readsAgents) shadowAgents(matches, view);
  return view;
}

/** The order of the files that lie in one folder. */
function rankOf(record: GuidelineRecord): number {
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
