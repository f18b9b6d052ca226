/** The formats that a guideline sync can take as the one source of truth, and those it can write. */
export const syncFormats = [
  "agents",
  "fw_c",
  "fw_b",
  "steering",
  "copilot",
  "gemini",
  "windsurf",
  "cline",
  "zed",
] as const;
export type SyncFormat = (typeof syncFormats)[number];

export interface SyncRequest {
  /** The source of truth; default: `guidelines.source` of the configuration. */
  readonly source?: SyncFormat;
  /**
   * The formats to write; default: `guidelines.targets` of the configuration, else every format the project
   * has.
   */
  readonly targets?: readonly SyncFormat[];
  /** Takes over into the source what people wrote in the targets. */
  readonly adopt?: boolean;
}

/** One file that a sync keeps up to date. */
export interface SyncEntry {
  /** POSIX, relative to the project root. */
  readonly path: string;
  readonly format: SyncFormat;
  /**
   * `conflict`: the managed part was edited by hand, or a file of another hand is in the way;
   * nothing is written there unless the sync is told to overwrite.
   */
  readonly action: "create" | "update" | "unchanged" | "delete" | "conflict";
  /** The whole file as it is; absent where there is none. */
  readonly before?: string;
  /** The whole file as it will be; absent where it goes. */
  readonly after?: string;
  /** For a conflict, what is in the way; for a file that needs no writing, why. One sentence. */
  readonly reason?: string;
  /** The content that the format cannot express, one sentence each. */
  readonly losses: readonly string[];
}

export interface SyncPlan {
  readonly source: SyncFormat;
  /** Files that the guidelines come from, in path order. */
  readonly source_files: readonly string[];
  readonly guidelines: number;
  /** Guidelines that a target has no place for at all, one sentence each. */
  readonly left_out: readonly string[];
  readonly entries: readonly SyncEntry[];
  /** Targets whose tool reads files of the source itself, so that nothing is written for them, one sentence each. */
  readonly read_directly: readonly string[];
  /** True when nothing has to be written: every entry is `unchanged`. */
  readonly in_sync: boolean;
}

/** The plan of a sync, with the files that it wrote. */
export interface SyncResult extends SyncPlan {
  readonly written: readonly string[];
}
