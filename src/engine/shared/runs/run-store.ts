import { isoTime } from "../../../base/clock.ts";
import { KitError } from "../../../base/kit-error.ts";
import { locateIssue } from "../../../base/standard-schema.ts";
import type { EventError } from "../../../protocol/event.ts";
import type { RunJournalEntry, RunRecord, RunStatus, RunWait } from "../../../protocol/run.ts";
import type { EngineHandlers, Page, RunFilter } from "../../contract.ts";
import type { EngineBase } from "../engine-base.ts";
import type { ListedTable } from "../list-filter.ts";
import { badCursor, causeOfStored, createRowReader } from "../stored-rows.ts";
import type { EntryRow } from "./run-journal.ts";

/**
 * The rows of runs. Each write resolves once it is on disk, and rejects with `lease_lost` once another
 * process has taken over.
 */
export interface RunStore {
  /** Claims a queued run, or claims a run again that could not be started. `undefined` for a run that has ended. */
  claim(run: QueuedRun, fence: number): Promise<ClaimedRun | undefined>;
  /** Stores whether a running run only waits, such as for an approval: the death of the process does not count then. */
  setIdle(run: RunRow, idle: boolean, fence: number): Promise<void>;
  /** Ends a run. If a caller has cancelled it, its status becomes `cancelled`. */
  settle(run: RunRow, end: RunEnd, fence: number): Promise<void>;
  /**
   * Requeues a run, or suspends it until a time or a signal. Returns its status after the write: `queued` if its signal
   * arrived during the suspension, `cancelled` if a caller has cancelled it.
   */
  putBack(run: RunRow, how: PutBack, fence: number): Promise<RunStatus>;
  find(runId: string): Promise<RunRow | undefined>;
  /** Newest first. A cursor is the id of the last run of the previous page. */
  list(filter: RunFilter): Promise<Page<RunRow>>;
  /** Cancels a run: at once if it is not running. `undefined` if it is unknown or has ended. */
  cancel(runId: string): Promise<RunRow | undefined>;
  /** The ids of the runs that a run has started, of those that these have started, and so on. */
  descendants(runId: string): Promise<readonly string[]>;
  /** The ids of those runs that have not ended. */
  openAmong(runIds: readonly string[]): Promise<readonly string[]>;
}

export interface RunEnd {
  readonly status: "completed" | "failed" | "cancelled";
  /** The stored form of `Blobs.store`. */
  readonly result: string | null;
  /** JSON. */
  readonly error: string | null;
}

export type PutBack =
  | { readonly status: "queued" }
  | {
      readonly status: "waiting";
      readonly wakeAt: number | undefined;
      /** JSON: why the code of the run cannot go on. Such a run ignores its signals until it is resumed. */
      readonly problem: string | null;
    };

/** A row of `runs`; times in ms since 1970. */
export interface RunRow {
  /** The order of admission. */
  readonly id: number;
  readonly run_id: string;
  readonly workflow: string;
  readonly status: RunStatus;
  readonly crashes: number;
  readonly idempotency_key: string | null;
  readonly accepted_at: number;
  readonly started_at: number | null;
  readonly ended_at: number | null;
  readonly error: string | null;
  /** JSON; set while the run waits because of its code. */
  readonly problem: string | null;
  readonly payload: string;
  readonly result: string | null;
  /** `ownerOfRun`. */
  readonly owner: string;
  /** `toStoredTrace`. */
  readonly trace: string | null;
  /** The id of the run that has started this run. */
  readonly parent: string | null;
}

/** `cancelling`: whether a caller has cancelled the run before it could be started. 0 or 1 in SQLite. */
export type ClaimedRun = RunRow & { readonly cancelling: boolean | number };

/** The fields of a run that the queue needs, without its payload. */
export type QueuedRun = Pick<RunRow, "id" | "run_id" | "crashes" | "owner">;

export function toRunRecord(
  row: RunRow,
  { blobs }: Pick<EngineBase, "blobs">,
  counts: { readonly waits: readonly RunWait[]; readonly event_count: number },
): RunRecord {
  const { started_at, ended_at } = row;
  const values = createRowReader((text) => blobs.load(text));
  return {
    run_id: row.run_id,
    workflow: row.workflow,
    ...(row.parent === null ? {} : { parent_run_id: row.parent }),
    ...causeOfStored(row.trace),
    status: row.status,
    payload: values.read(row.payload),
    ...(row.result === null ? {} : { result: values.read(row.result) }),
    ...(row.error === null ? {} : { error: values.read(row.error) as EventError }),
    ...(row.problem === null || hasEnded(row.status)
      ? {}
      : { problem: values.read(row.problem) as EventError }),
    ...values.fault(),
    accepted_at: isoTime(row.accepted_at),
    ...(started_at === null ? {} : { started_at: isoTime(started_at) }),
    ...(ended_at === null ? {} : { ended_at: isoTime(ended_at) }),
    ...(started_at === null || ended_at === null ? {} : { duration_ms: Math.max(0, ended_at - started_at) }),
    ...(counts.waits.length === 0 ? {} : { waiting_for: counts.waits }),
    event_count: counts.event_count,
  };
}

/** The latest time that a `Date` can hold (ECMA-262, 21.4.1.1): records of longer waits have no `until`. */
const latestMs = 8.64e15;

/** A wait in a run's record. `deadline` is a time of `EngineBase.time`. */
export function toRunWait(
  { kind, name, deadline, value }: Pick<EntryRow, "kind" | "name" | "deadline" | "value">,
  { time }: Pick<EngineBase, "time">,
): RunWait {
  const until = deadline === null ? Number.POSITIVE_INFINITY : time.toWall(deadline);
  return {
    ...(kind === "wait" ? { signal: name } : {}),
    ...(kind === "step" && value !== null ? { run_id: String(JSON.parse(value)) } : {}),
    ...(until > latestMs ? {} : { until: isoTime(until) }),
  };
}

/** The longest JSON of a value in a journal entry, in characters; for longer values the entry has only the length. */
const maxValueLength = 65_536;

/** An entry of a journal for its readers; a large value is replaced by its length. */
export function toJournalRecord(row: EntryRow, base: Pick<EngineBase, "blobs" | "time">): RunJournalEntry {
  const { position, kind, name, state } = row;
  const head = { position, kind, ...(name === "" ? {} : { name }), state };
  const values = createRowReader((text) => base.blobs.load(text));
  const loaded = row.value === null ? undefined : values.read(row.value);
  if (state === "pending") {
    const { until } = toRunWait(row, base);
    return { ...head, until, ...(kind === "wait" && loaded !== undefined ? { schema: loaded } : {}) };
  }
  const ended = { ...head, ended_as: Number(row.ended_as) };
  if (state === "failed") {
    const { code, message } = (loaded ?? {}) as { readonly code?: unknown; readonly message?: unknown };
    return {
      ...ended,
      error: { type: String(code ?? "internal_error"), message: String(message ?? "It failed.") },
    };
  }
  const size = loaded === undefined ? 0 : JSON.stringify(loaded).length;
  if (size > maxValueLength) return { ...ended, value_omitted: size };
  return loaded === undefined ? ended : { ...ended, value: loaded };
}

/** The columns that lists of runs read. */
export const listedRuns: ListedTable = {
  table: "runs",
  order: "id",
  last: Number.MAX_SAFE_INTEGER,
  texts: ["run_id", "workflow"],
  json: ["payload", "error"],
};

/** The id of a cursor of a list of runs; the highest number for the first page. Throws `invalid_request` for an invalid cursor. */
export function parseRunCursor(cursor: string | undefined): number {
  if (cursor === undefined) return Number.MAX_SAFE_INTEGER;
  if (!/^\d{1,15}$/.test(cursor)) throw badCursor();
  return Number(cursor);
}

export function hasEnded(status: RunStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/**
 * The line of a run. Each run has a separate line, except for risky runs, during which the process has died several times:
 * these share one line and run one at a time, so that a run that kills the process does not cause the others to fail. A run
 * that waits for something else is not in the line.
 */
export function lineOfRun({ run_id, crashes }: Pick<RunRow, "run_id" | "crashes">): string {
  return isRisky({ crashes }) ? "runs/suspects" : `run/${run_id}`;
}

export function isRisky({ crashes }: Pick<RunRow, "crashes">): boolean {
  return crashes > 2;
}

/** How often a process can die while a run makes no progress in its journal, before the run fails. */
export const mostCrashes = 5;

/** The stored error of a run that failed because of crashes. */
export const crashText = JSON.stringify({
  type: "internal_error",
  message: `The process ended ${mostCrashes} times while the run was at the same place.`,
});

/** The most signals that can wait for a run. */
export const mostUntaken = 1_000;

/** Throws `invalid_request` if the payload does not fit the schema of the open wait for the signal. */
export async function checkSignalFits(
  signal: { readonly run_id: string; readonly name: string; readonly payload: unknown },
  schema: unknown,
  check: EngineHandlers["checkSignal"],
): Promise<void> {
  const { run_id, name, payload } = signal;
  const issues = (await check?.({ run_id, name, schema }, payload)) ?? [];
  if (issues.length > 0) throw unfit(name, issues);
}

function unfit(name: string, issues: readonly string[]): KitError {
  return new KitError({
    code: "invalid_request",
    message: `The payload of the signal ${JSON.stringify(name)} does not fit the schema of the run's wait: ${issues.join("; ")}.`,
    hint: "The run keeps waiting. Send the signal again with a payload that fits.",
    meta: { issues: issues.map((issue) => locateIssue(issue, "payload")) },
  });
}

export function badSignalName(): KitError {
  return new KitError({
    code: "invalid_request",
    message: "The name of a signal must be a string of 1 to 256 characters.",
  });
}

export function unknownRun(): KitError {
  return new KitError({ code: "run_not_found", message: "There is no such run." });
}

export function notFailed(): KitError {
  return new KitError({
    code: "conflict",
    message: "Only a run that has failed can be retried.",
    hint: "A run that waits with a problem continues by itself once its code is right; `kit runs rerun` starts a new run.",
  });
}

/**
 * SQL for the table of journals, with the parameters of one run. Forgets the failed calls at which the run ended, which are
 * those after whose end it made no other call that ended; an entry without `made_after` counts as made then if it ended
 * later. Forgets the waits that the run began after such an end, because it may not come to them again. Numbers the remaining
 * ends without gaps; that leaves `made_after` valid, because no remaining call was made after a forgotten end.
 */
export const forgetFailures = (journal: string, run: string): readonly string[] => [
  `DELETE FROM ${journal} AS f WHERE run = ${run} AND state = 'failed' AND NOT EXISTS (
     SELECT 1 FROM ${journal} AS e WHERE e.run = f.run AND e.position > f.position AND e.ended_as > f.ended_as
       AND (e.made_after IS NULL OR e.made_after >= f.ended_as))`,
  `DELETE FROM ${journal} AS w WHERE run = ${run} AND state = 'pending' AND made_after > (
     SELECT count(*) FROM ${journal} AS e WHERE e.run = w.run AND e.ended_as <= w.made_after)`,
  `UPDATE ${journal} AS j SET ended_as = n.number FROM (
     SELECT position, row_number() OVER (ORDER BY ended_as) AS number FROM ${journal}
     WHERE run = ${run} AND ended_as IS NOT NULL) AS n
   WHERE j.run = ${run} AND j.position = n.position AND j.ended_as <> n.number`,
];

export function alreadyEnded(): KitError {
  return new KitError({ code: "conflict", message: "The run has ended, so it accepts no signals." });
}

export function tooManySignals(): KitError {
  return new KitError({
    code: "too_many_requests",
    message: `${mostUntaken} signals are already waiting for this run.`,
    meta: { retry_after_s: 60 },
  });
}

export function parentCancelled(): KitError {
  return new KitError({ code: "aborted", message: "The run that starts this one was cancelled." });
}

export function otherPayload(): KitError {
  return new KitError({
    code: "conflict",
    message: "This idempotency key was used before, with another payload.",
  });
}
