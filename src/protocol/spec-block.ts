/** The frameworks a spec block can come from, by wire value. Labels: `specs/frameworks.ts`. */
export const frameworks = ["fw_a", "fw_b", "fw_c", "fw_d", "fw_e", "custom"] as const;
export type Framework = (typeof frameworks)[number];

export const specTypes = ["requirement", "design", "task", "constraint"] as const;
export type SpecType = (typeof specTypes)[number];

export const lifecycles = ["active", "deprecated", "legacy", "obsolete"] as const;
export type Lifecycle = (typeof lifecycles)[number];

export const priorities = ["critical", "high", "medium", "low"] as const;
export type Priority = (typeof priorities)[number];

/** How much a block counts in a ranking. */
export const lifecycleWeights: Readonly<Record<Lifecycle, number>> = {
  active: 1,
  deprecated: 0.5,
  legacy: 0.2,
  obsolete: 0,
};
export const priorityWeights: Readonly<Record<Priority, number>> = {
  critical: 1,
  high: 0.8,
  medium: 0.5,
  low: 0.3,
};

/** The longest `summary`, in UTF-16 code units. */
export const maxSummaryLength = 500;

/** The EARS forms (Mavin et al., "Easy Approach to Requirements Syntax"). */
export const earsPatterns = [
  "ubiquitous",
  "event_driven",
  "state_driven",
  "optional_feature",
  "unwanted_behavior",
  "complex",
] as const;
export type EarsPattern = (typeof earsPatterns)[number];

/** One acceptance criterion, split at its keywords. `trigger` is empty where there is none. */
export interface AcceptanceCriterion {
  readonly pattern: string;
  readonly trigger: string;
  readonly response: string;
}

/** A criterion as written: its number ("1.2"), text, form and line in the source file. */
export interface EarsEntry {
  readonly pattern: EarsPattern | "unclassified";
  readonly text: string;
  readonly line: number;
  readonly number?: string;
}

/** Lines of the file as it lies on disk: 1-based, inclusive. */
export interface SourceSpan {
  readonly start_line: number;
  readonly end_line: number;
}

/** `metadata.status` of a task. */
export type TaskStatus = "open" | "done" | "in_progress";

/** Free-form, with the keys that adapters agree on. */
export interface SpecMetadata {
  readonly source?: SourceSpan;
  /** Other names of the file: links inside the project that lead to it. */
  readonly aliases?: readonly string[];
  /** As the source names it, else the author of the file's first commit. */
  readonly author?: string;
  readonly version?: string;
  readonly related_specs?: readonly string[];
  readonly code_refs?: readonly string[];
  readonly test_refs?: readonly string[];
  readonly acceptance_criteria?: readonly AcceptanceCriterion[];
  readonly ears_patterns?: readonly EarsEntry[];
  readonly user_story?: string;
  readonly status?: string;
  readonly [key: string]: unknown;
}

/** The one record that specifications of every framework become. */
export interface SpecBlock {
  /** Unique within a project, and the same as long as the file stays the same. */
  readonly id: string;
  /** POSIX, relative to the project root. */
  readonly path: string;
  readonly framework: Framework;
  readonly spec_type: SpecType;
  readonly title: string;
  readonly content: string;
  readonly summary?: string;
  readonly tags: readonly string[];
  readonly lifecycle: Lifecycle;
  readonly priority: Priority;
  readonly created_at?: string;
  readonly updated_at?: string;
  readonly metadata: SpecMetadata;
}
