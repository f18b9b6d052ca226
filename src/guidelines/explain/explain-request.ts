import { textTokens } from "../../base/text-tokens.ts";
import type { AppliedGuideline, ExplainTool, ShadowedGuideline } from "../../protocol/guideline-query.ts";
import { type GuidelineRecord, toGuideline } from "../guideline-record.ts";
import type { GuidelineMatch, GuidelineMatcher } from "../match/guideline-matcher.ts";
import type { ToolId } from "../tools/tool-table.ts";

/** The input of `explainFile`. */
export interface ExplainRequest {
  /** All guidelines of the project, in the order of `compareRecords`. */
  readonly records: readonly GuidelineRecord[];
  /** Compiled from the same records. */
  readonly matcher: GuidelineMatcher;
  /** A project-relative path; it need not exist. */
  readonly file: string;
  /** Without it, the view of every tool, AGENTS.md by the nearest file. */
  readonly tool?: ExplainTool;
  /** The text of a project file, for imports; nothing where it cannot be read. */
  readonly readText?: (path: string) => string | undefined;
  /** Whether Claude Code reads AGENTS.md by itself; default: where the project has no CLAUDE.md, as since 2.1.277. */
  readonly claudeReadsAgents?: boolean;
  /** Guidelines of the user's home folder, by tool; default: none. */
  readonly userRecords?: (tool: ToolId) => readonly GuidelineRecord[];
}

/** The view of one tool, before it is an answer. */
export interface ToolView {
  readonly applied: AppliedGuideline[];
  readonly shadowed: ShadowedGuideline[];
}

export function toApplied(match: GuidelineMatch): AppliedGuideline {
  const { record, reason, glob } = match;
  const detail = glob ?? ignoredGlobs(record);
  return {
    guideline: toGuideline(record),
    line: record.span.start_line,
    tokens: tokensOf(record),
    reason,
    ...(record.read_as !== undefined && { via: record.read_as }),
    ...(detail !== undefined && { detail }),
  };
}

/** Its heading and its content. */
export function tokensOf(record: Pick<GuidelineRecord, "title" | "content">): number {
  return textTokens(`## ${record.title}\n\n${record.content}`);
}

function ignoredGlobs(record: GuidelineRecord): string | undefined {
  if (record.inclusion !== "always" || record.globs.length === 0) return undefined;
  return `(its pattern ${record.globs.join(",")} is ignored)`;
}

/** Sorts by what `rankOf` says, then from the root folder down, then by file and position. */
export function inReadingOrder(
  matches: readonly GuidelineMatch[],
  rankOf: (record: GuidelineRecord) => number,
): GuidelineMatch[] {
  const keyed = matches.map((match, index) => ({ match, index, rank: rankOf(match.record) }));
  keyed.sort(
    (a, b) =>
      a.rank - b.rank || depthOf(a.match.record.scope) - depthOf(b.match.record.scope) || a.index - b.index,
  );
  return keyed.map(({ match }) => match);
}

/** The number of folders between the root and a folder. */
export function depthOf(folder: string): number {
  return folder === "" ? 0 : folder.split("/").length;
}
