import type { GuidelineMatch } from "../guideline-matcher.ts";
import { type GuidelineRecord, nameOf } from "../guideline-record.ts";
import { inReadingOrder, type ToolView, toApplied } from "./explain-request.ts";

/**
 * Cursor: rules that always apply, then those whose globs match, then the legacy `.cursorrules`; the
 * rules that the agent or somebody has to ask for come last. Nested rules come after those above.
 *
 * @see FORMATS.md, Cursor
 */
export function explainCursor(matches: readonly GuidelineMatch[]): ToolView {
  const own = matches.filter(({ record }) => record.tool === "cursor");
  return { applied: inReadingOrder(own, rankOf).map(toApplied), shadowed: [] };
}

function rankOf(record: GuidelineRecord): number {
  if (nameOf(record).endsWith(".cursorrules")) return 2;
  return { always: 0, pattern: 1, auto: 3, manual: 4 }[record.inclusion];
}
