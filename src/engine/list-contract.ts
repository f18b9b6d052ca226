import type { DispatchStatus } from "../protocol/dispatch.ts";
import type { RunStatus } from "../protocol/run.ts";

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next_cursor?: string | undefined;
  /** The number of items on all pages, if the filter asked for it. An engine that cannot count leaves it out. */
  readonly total?: number | undefined;
}

interface WorkFilter {
  /** Only work whose id, names, input or error contains this text, in upper or lower case. */
  readonly search?: string | undefined;
  /** Only work that was accepted at this time or later; ms since 1970. */
  readonly since?: number | undefined;
  /** Only work that was accepted before this time; ms since 1970. */
  readonly until?: number | undefined;
  /** Asks for `total`. */
  readonly count?: boolean | undefined;
  /** 1 to 1,000; default 50. */
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

export interface DispatchFilter extends WorkFilter {
  readonly agent?: string | undefined;
  readonly instance_id?: string | undefined;
  readonly session?: string | undefined;
  /** One status, or any of several. */
  readonly status?: DispatchStatus | readonly DispatchStatus[] | undefined;
}

export interface RunFilter extends WorkFilter {
  readonly workflow?: string | undefined;
  /** One status, or any of several. */
  readonly status?: RunStatus | readonly RunStatus[] | undefined;
}

/** A place in the list of what waits for a person, which is sorted by the time at which it began to wait, then by id. */
export interface WaitingPlace {
  /** ISO 8601. */
  readonly at: string;
  /** The id of the call or of the run. */
  readonly id: string;
  /** The position of the wait in the journal of a run; 0 for a call. */
  readonly position: number;
}

/** Selects a page of what waits: at most `limit` (from 1) after a place. */
export interface WaitingListing {
  readonly limit: number;
  readonly after?: WaitingPlace | undefined;
}
