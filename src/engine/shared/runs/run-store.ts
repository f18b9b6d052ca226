import { isoTime } from "../../../base/clock.ts";
import { KitError } from "../../../base/kit-error.ts";
import type { EventError } from "../../../protocol/event.ts";
import type { RunJournalEntry, RunRecord, RunStatus, RunWait } from "../../../protocol/run.ts";
import type { EngineHandlers } from "../../contract.ts";
import type { EngineBase } from "../engine-base.ts";
import { causeOfStored, createRowReader } from "../stored-rows.ts";
import type { EntryKind } from "./run-journal.ts";

/**
 * The rows of runs, as their execution needs them. Each call resolves once it is on disk, and rejects with `lease_lost` once
 * another process has taken over.
 */
export interface RunStore {
  /** Takes a queued run to work; one that was claimed and could not be begun is claimed again. Undefined for one that has ended. */
  claim(place: RunPlace, fence: number): Promise<RunRow | undefined>;
  /** Whether a caller has cancelled it. */
  isCancelling(run: RunRow): Promise<boolean>;
  /** Ends a run; one that is to be cancelled becomes `cancelled`. */
  settle(run: RunRow, end: RunEnd, fence: number): Promise<void>;
  /**
   * Puts a run back into the queue, or has it wait for a time or a signal. Gives the status that it has then: `queued` where
   * its signal came while it was being suspended, `cancelled` where a caller has cancelled it.
   */
  putBack(run: RunRow, how: PutBack, fence: number): Promise<RunStatus>;
}

export interface RunEnd {
  readonly status: "completed" | "failed" | "cancelled";
  /** As the blobs stored it. */
  readonly result: string | null;
  /** JSON. */
  readonly error: string | null;
}

export type PutBack =
  | { readonly status: "queued" }
  | { readonly status: "waiting"; readonly wakeAt: number | undefined };

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
  readonly payload: string;
  readonly result: string | null;
  /** `ownerOfRun`. */
  readonly owner: string;
  /** `toStoredTrace`. */
  readonly trace: string | null;
  /** The run that has started it. */
  readonly parent: string | null;
}

/** Which run it is, without what it says. */
export type RunPlace = Pick<RunRow, "id" | "run_id" | "crashes" | "owner">;

export function toRunRecord(
  row: RunRow,
  { blobs }: Pick<EngineBase, "blobs">,
  more: { readonly waits: readonly RunWait[]; readonly event_count: number },
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
    ...values.fault(),
    accepted_at: isoTime(row.accepted_at),
    ...(started_at === null ? {} : { started_at: isoTime(started_at) }),
    ...(ended_at === null ? {} : { ended_at: isoTime(ended_at) }),
    ...(started_at === null || ended_at === null ? {} : { duration_ms: Math.max(0, ended_at - started_at) }),
    ...(more.waits.length === 0 ? {} : { waiting_for: more.waits }),
    event_count: more.event_count,
  };
}

/** The last time that a date can be (ECMA-262, 21.4.1.1): what waits for longer waits for no date. */
const latestMs = 8.64e15;

/** A wait of a run's record. `deadline` is of `EngineBase.time`. */
export function toRunWait(
  {
    kind,
    name,
    deadline,
  }: { readonly kind: string; readonly name: string; readonly deadline: number | null },
  { time }: Pick<EngineBase, "time">,
): RunWait {
  const until = deadline === null ? Number.POSITIVE_INFINITY : time.toWall(deadline);
  return {
    ...(kind === "wait" ? { signal: name } : {}),
    ...(until > latestMs ? {} : { until: isoTime(until) }),
  };
}

/** Characters of a value that a reader of the journal gets. */
const maxShown = 65_536;

/** An entry of a journal as its readers get it: large values by their size. */
export function toJournalRecord(
  row: {
    readonly position: number;
    readonly kind: EntryKind;
    readonly name: string;
    readonly state: "pending" | "done" | "failed";
    readonly deadline: number | null;
    readonly ended_as: number | null;
    readonly value: string | null;
  },
  base: Pick<EngineBase, "blobs" | "time">,
): RunJournalEntry {
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
  if (size > maxShown) return { ...ended, value_omitted: size };
  return loaded === undefined ? ended : { ...ended, value: loaded };
}

export function hasEnded(status: RunStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/**
 * A run has a line of its own, but for those under which the process has died several times: they go one
 * at a time, so that the one to blame is found out, and the others are not given up with it.
 */
export function lineOfRun({ run_id, crashes }: Pick<RunRow, "run_id" | "crashes">): string {
  return isRisky({ crashes }) ? "runs/suspects" : `run/${run_id}`;
}

export function isRisky({ crashes }: Pick<RunRow, "crashes">): boolean {
  return crashes > 2;
}

/** How often a process may die under a run, at one place of its journal, before the run is given up. */
export const mostCrashes = 5;

/** The error of a run that was given up. */
export const crashText = JSON.stringify({
  type: "internal_error",
  message: `The process ended ${mostCrashes} times while the run was at the same place.`,
});

/** Signals that a run may have which it has not taken yet. */
export const mostUntaken = 1_000;

/** Throws `invalid_request` for what the open wait of a name does not take; `schema` is as the blobs stored it. */
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
    message: `The signal ${JSON.stringify(name)} is not what the run waits for: ${issues.join("; ")}.`,
    hint: "The run keeps waiting.",
    meta: { issues: issues.map((message) => ({ path: "payload", message })) },
  });
}

export function badSignalName(): KitError {
  return new KitError({
    code: "invalid_request",
    message: "The name of a signal is a text of 1 to 256 characters.",
  });
}

export function unknownRun(): KitError {
  return new KitError({ code: "run_not_found", message: "There is no such run." });
}

export function alreadyEnded(): KitError {
  return new KitError({ code: "conflict", message: "The run has ended, and takes no signal any more." });
}

export function tooManySignals(): KitError {
  return new KitError({
    code: "too_many_requests",
    message: `The run has ${mostUntaken} signals that it has not taken yet.`,
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
