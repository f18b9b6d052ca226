import type { ConversionFormat, ExportFormat, Guideline, SourceType } from "./guideline.ts";

/** Filters combine with AND. */
export interface GuidelineQuery {
  readonly source?: SourceType;
  /** A project-relative path; it need not exist. */
  readonly file?: string;
  /** Case-insensitive; every word must occur in the title or the content. */
  readonly q?: string;
  /** Guidelines per page; without it, all. */
  readonly limit?: number;
  readonly cursor?: string;
}

export interface ConvertRequest {
  readonly guideline_id: string;
  readonly format: ConversionFormat;
  /** Default true: nothing is written. */
  readonly preview?: boolean;
  /** Default false: a steering file with other content is a conflict. */
  readonly overwrite?: boolean;
}

export interface ExportRequest {
  readonly format: ExportFormat;
}

/** The tools whose view of a repository `explain` can give. */
export const explainTools = [
  "fw_a",
  "fw_b",
  "fw_c",
  "codex",
  "copilot",
  "gemini",
  "windsurf",
  "cline",
  "zed",
  "agents",
  "agents-nearest",
  "agents-all",
] as const;
export type ExplainTool = (typeof explainTools)[number];

/** Why a guideline applies to a file, or what keeps it from it. */
export interface AppliedGuideline {
  readonly guideline: Guideline;
  /** 1-based lines of the source file. */
  readonly line: number;
  /** What it costs in front of a model, about: a quarter of its characters. */
  readonly tokens: number;
  /** The alias of the file under which the tool finds it; absent where that is its real path. */
  readonly via?: string;
  readonly reason: "always" | "pattern" | "nested" | "import" | "manual" | "auto";
  /**
   * For a pattern, the glob that matched; for an import, the importing files, outermost first, joined
   * by ` > `; for a guideline that is always included in spite of its globs, that they are ignored.
   */
  readonly detail?: string;
}

export interface ShadowedGuideline extends AppliedGuideline {
  /** The id or file of what takes its place, and the rule that says so. */
  readonly shadowed_by: string;
  readonly rule: string;
}

/** What applies to one file, in the order in which the tool would read it. */
export interface Explanation {
  readonly file: string;
  readonly tool?: ExplainTool;
  readonly applied: readonly AppliedGuideline[];
  readonly shadowed: readonly ShadowedGuideline[];
  /** Of what applies without being asked for, about. */
  readonly tokens: number;
  /** What of it the tool does not read although it applies, one sentence each; absent for nothing. */
  readonly notes?: readonly string[];
}
