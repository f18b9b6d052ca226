import type { IndexingProgress } from "./indexing.ts";

/** A file that a spec names and that changed after the spec did. */
export interface StaleFile {
  readonly path: string;
  /** ISO 8601 time of the last commit of the file; absent for a file that was never committed. */
  readonly changed_at?: string;
  /** That commit; absent where the change is not committed yet. */
  readonly commit?: string;
}

/** A block whose referenced code changed in Git after its last change and last acceptance. */
export interface StaleSpec {
  readonly id: string;
  readonly title: string;
  readonly path: string;
  readonly line: number;
  /** Last commit of the spec's own file. */
  readonly updated_at: string;
  /** When somebody last said that the block still holds. */
  readonly accepted_at?: string;
  readonly files: readonly StaleFile[];
}

export interface StaleReport {
  /** In path, then line order. */
  readonly stale: readonly StaleSpec[];
  /** Blocks that name code of the project and can fall behind it: no task that is done, nothing obsolete. */
  readonly checked: number;
  /** Sentences on what Git could not tell: no repository, no commit yet, a shallow clone. */
  readonly notes: readonly string[];
}

export interface StaleQuery {
  /** Blocks per page, 1 to 1,000; default 50. */
  readonly limit?: number;
  /** `next_cursor` of the page before. */
  readonly cursor?: string;
}

/** A report with one page of the stale blocks; all else is of the whole. */
export interface StalePage extends StaleReport {
  /** How many blocks are stale in all. */
  readonly total_count: number;
  readonly next_cursor?: string;
  readonly indexing?: IndexingProgress;
}

/** What `acceptStale` recorded. */
export interface StaleAcceptance {
  /** Ids of the blocks that were stale. */
  readonly accepted: readonly string[];
  /** The file of acceptances, project-relative; commit it. Absent where nothing was written. */
  readonly written_to?: string;
}
