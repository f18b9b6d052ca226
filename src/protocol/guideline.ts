import type { IndexingProgress } from "./indexing.ts";
export const sourceTypes = [
  "fw_c",
  "fw_b",
  "steering",
  "agents",
  "copilot",
  "gemini",
  "windsurf",
  "cline",
  "zed",
  "sample",
] as const;
export type SourceType = (typeof sourceTypes)[number];

/** What a guideline can be converted to, and what all of them can be exported to. */
export const conversionFormats = [
  "steering",
  "fw_c",
  "fw_b",
  "copilot",
  "gemini",
  "windsurf",
  "cline",
  "zed",
] as const;
export type ConversionFormat = (typeof conversionFormats)[number];
export const exportFormats = ["fw_c", "fw_b"] as const;
export type ExportFormat = (typeof exportFormats)[number];

/** One coding rule of a repository. */
export interface Guideline {
  /** First 16 hex digits of SHA-256 over `<source_file>:<title>`; see `guidelines/guideline-id.ts`. */
  readonly id: string;
  readonly title: string;
  readonly content: string;
  readonly source_type: SourceType;
  /** POSIX, relative to the project root. */
  readonly source_file: string;
  /** Other names of that file: links inside the project that lead to it. Absent for none. */
  readonly aliases?: readonly string[];
  /** Globs, joined by commas, in the meaning of the tool that the source belongs to. */
  readonly file_pattern?: string;
  readonly tags: readonly string[];
  readonly is_sample: boolean;
}

export interface GuidelineList {
  readonly guidelines: readonly Guideline[];
  readonly total_count: number;
  readonly counts_by_source: Readonly<Record<string, number>>;
  readonly next_cursor?: string;
  readonly indexing?: IndexingProgress;
}

export interface ConversionResult {
  readonly filename: string;
  readonly content: string;
  readonly frontmatter: Readonly<Record<string, unknown>>;
  readonly source_id: string;
  /** What the target format cannot express, one sentence each. */
  readonly losses: readonly string[];
  /** Project-relative path; only when `preview` was false. */
  readonly written_to?: string;
}

export interface ExportResult {
  readonly filename: string;
  readonly content: string;
}
