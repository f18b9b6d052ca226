import type { GuidelineRecord } from "../guideline-record.ts";
import type { GuidelineMatch } from "../match/guideline-matcher.ts";
import { readBy } from "./explain-by-table.ts";
import { type ExplainRequest, inReadingOrder, type ToolView, toApplied } from "./explain-request.ts";
import { createImportChain } from "./import-chain.ts";

/**
 * Kiro: steering that is always included, AGENTS.md of the root, then what a pattern includes, each followed by the files
 * that it references; steering that somebody or the agent has to ask for comes last.
 */
export function explainKiro(request: ExplainRequest, matches: readonly GuidelineMatch[]): ToolView {
  const view: ToolView = { applied: [], shadowed: [] };
  const chain = createImportChain(request, {
    maxHops: 1,
    relativeToFile: false,
    limitRule: "File references of a referenced file are not followed.",
    kind: { source_type: "steering", tool: "kiro", imports: "none" },
  });
  for (const match of inReadingOrder(readBy("kiro", matches), rankOf))
    chain.add(toApplied(match), match.record, view);
  return view;
}

function rankOf(record: GuidelineRecord): number {
  if (record.tool !== "kiro") return 1;
  return { always: 0, pattern: 2, auto: 3, manual: 4 }[record.inclusion];
}
