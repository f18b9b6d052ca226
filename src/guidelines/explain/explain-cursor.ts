import { type GuidelineRecord, nameOf } from "../guideline-record.ts";
import type { GuidelineMatch } from "../match/guideline-matcher.ts";
import { readBy } from "./explain-by-table.ts";
import { inReadingOrder, type ToolView, toApplied } from "./explain-request.ts";

/**
 * Cursor: rules that always apply, then those whose globs match, then AGENTS.md and the legacy
 * `.cursorrules`; the rules that the agent or somebody has to ask for come last. Nested ones come after
 * those above.
 *
 * @see FORMATS.md, Cursor
 */
export function explainCursor(matches: readonly GuidelineMatch[]): ToolView {
  // CLAUDE.md is read by Cursor's command line, and not by the editor, whose view this is.
  const read = readBy("cursor", matches).filter(({ record }) => record.tool !== "claude");
  return { applied: inReadingOrder(read, rankOf).map(toApplied), shadowed: [] };
}

function rankOf(record: GuidelineRecord): number {
  if (nameOf(record).endsWith(".cursorrules")) return 3;
  if (record.tool !== "cursor") return 2;
  return { always: 0, pattern: 1, auto: 4, manual: 5 }[record.inclusion];
}
