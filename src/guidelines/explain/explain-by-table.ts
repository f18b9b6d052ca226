import { type GuidelineRecord, nameOf } from "../guideline-record.ts";
import type { GuidelineMatch } from "../match/guideline-matcher.ts";
import { readIndex, type ToolId, toolInfo } from "../tools/tool-table.ts";
import { explainAgents } from "./explain-agents.ts";
import { type ExplainRequest, inReadingOrder, type ToolView, toApplied } from "./explain-request.ts";
import { createImportChain } from "./import-chain.ts";

/** GitHub Copilot: all instructions together; of AGENTS.md the nearest, CLAUDE.md and GEMINI.md only without one. */
export function explainCopilot(request: ExplainRequest, matches: readonly GuidelineMatch[]): ToolView {
  const agents = explainAgents(request, matches, "nearest");
  const others = readBy("copilot", matches).filter(({ record }) => !isNamed(record, "AGENTS.md"));
  const own = others.filter(({ record }) => record.tool === "copilot");
  const foreign = others.filter(({ record }) => record.tool !== "copilot");
  const nearest = agents.applied[0];
  const by = {
    shadowed_by: nearest?.guideline.source_file ?? "",
    rule: "Copilot reads CLAUDE.md or GEMINI.md in place of AGENTS.md.",
  };
  const ordered = inReadingOrder(own, byTable("copilot"));
  const asked = (match: GuidelineMatch): boolean => rankOf(match.record) > 0;
  const [first] = foreign;
  const read =
    nearest === undefined ? foreign.filter(({ record }) => record.tool === first?.record.tool) : [];
  return {
    applied: [
      ...ordered.filter((match) => !asked(match)).map(toApplied),
      ...agents.applied,
      ...read.map(toApplied),
      ...ordered.filter(asked).map(toApplied),
    ],
    shadowed: [
      ...agents.shadowed,
      ...(nearest === undefined ? [] : foreign.map((match) => ({ ...toApplied(match), ...by }))),
    ],
  };
}

/** Gemini CLI: every GEMINI.md from the root down, each followed by its imports. */
export function explainGemini(request: ExplainRequest, matches: readonly GuidelineMatch[]): ToolView {
  const view: ToolView = { applied: [], shadowed: [] };
  const chain = createImportChain(request, {
    maxHops: 5,
    relativeToFile: true,
    limitRule: "Gemini CLI follows imports over at most five files.",
    kind: { source_type: "gemini", tool: "gemini", imports: "at" },
  });
  for (const match of inReadingOrder(readBy("gemini", matches), byTable("gemini")))
    chain.add(toApplied(match), match.record, view);
  return view;
}

/** Windsurf and Cline: all files that the table names, in its order; guidelines loaded on request come last. */
export function explainTogether(tool: "windsurf" | "cline", matches: readonly GuidelineMatch[]): ToolView {
  return { applied: inReadingOrder(readBy(tool, matches), byTable(tool)).map(toApplied), shadowed: [] };
}

/** Zed: the first existing file of its list, whole; the others are not read. */
export function explainZed(matches: readonly GuidelineMatch[]): ToolView {
  const ordered = inReadingOrder(readBy("zed", matches), byTable("zed"));
  const [first] = ordered;
  if (first === undefined) return { applied: [], shadowed: [] };
  const isFirst = ({ record }: GuidelineMatch): boolean => record.source_file === first.record.source_file;
  const by = { shadowed_by: nameOf(first.record), rule: "Zed reads the first file of its list only." };
  return {
    applied: ordered.filter(isFirst).map(toApplied),
    shadowed: ordered.filter((match) => !isFirst(match)).map((match) => ({ ...toApplied(match), ...by })),
  };
}

/** The guidelines of the files that a tool reads by the table, each once. */
export function readBy(tool: ToolId, matches: readonly GuidelineMatch[]): readonly GuidelineMatch[] {
  const best = new Map<string, GuidelineMatch>();
  for (const match of matches) {
    if (match.record.source_type === "sample") continue;
    const index = readIndex(tool, nameOf(match.record));
    if (index === -1) continue;
    const known = best.get(match.record.id);
    if (known === undefined || index < readIndex(tool, nameOf(known.record)))
      best.set(match.record.id, match);
  }
  return [...best.values()];
}

/** The order of the table; guidelines loaded on request come last. */
function byTable(tool: ToolId): (record: GuidelineRecord) => number {
  const { length } = toolInfo(tool).reads;
  return (record) => rankOf(record) * length + readIndex(tool, nameOf(record));
}

function rankOf(record: GuidelineRecord): number {
  return { always: 0, pattern: 0, auto: 1, manual: 2 }[record.inclusion];
}

export function isNamed(record: GuidelineRecord, file: string): boolean {
  const name = nameOf(record);
  return name === file || name.endsWith(`/${file}`);
}
