import { endsWithin, raceSignal } from "../../base/abort.ts";
import type { Clock } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { query } from "../../sqlite/statements.ts";
import { agentStream, type Engine, type EngineHandlers, type EngineLoad } from "../contract.ts";
import { createMachineClock } from "../durable-time.ts";
import { defaultLimits, type EngineLimits } from "../engine-base.ts";
import { closing } from "./dispatches/attached-calls.ts";
import { createDispatches } from "./dispatches/create-dispatches.ts";
import { lineOf } from "./dispatches/dispatch-rows.ts";
import type { EmbeddedBase } from "./embedded-base.ts";
import { createEngineCore } from "./engine-core.ts";
import { createEventLog, type EmbeddedEventLog } from "./events/create-event-log.ts";
import type { LeaseHolder } from "./lease/lease.ts";
import { createTenure } from "./lease/tenure.ts";
import { createOutcomes } from "./outcomes.ts";
import { createRuns } from "./runs/create-runs.ts";
import { createSchedules } from "./schedules.ts";

export interface EmbeddedEngineOptions {
  /** Where work is kept; created when absent. Without one it is in memory, and gone with the process. */
  readonly folder?: string;
  readonly clock?: Clock;
  /** Limits that are left out keep their defaults. */
  readonly limits?: Partial<EngineLimits>;
}

/** How long a drain waits for a handler that ignores its aborted signal. */
const abortPatienceMs = 2_000;
/** Reads check at most this often whether the database file is still there. */
const checkEveryMs = 10;
/** How long a drain waits for work that waits for an approval, which may take days. */
const approvalPatienceMs = 5_000;

/**
 * The engine of one machine: accepted work lies in SQLite in a folder. Several processes may share the
 * folder; one of them works, the others accept, and one of them takes over when it is gone.
 *
 * Throws `unavailable` when the folder's store is damaged, or of a newer kit.
 */
export function createEmbeddedEngine(options: EmbeddedEngineOptions = {}): Engine {
  const { clock = createMachineClock(), folder } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const core = createEngineCore({ folder, clock, limits });
  const { base, lease } = core;
  const dispatches = createDispatches(base, limits);
  const events = createEventLog({
    ...(folder === undefined ? {} : { folder }),
    clock,
    lease,
    mayRemove: base.time.mayRemove,
    retention: {
      maxAgeMs: limits.retentionMs,
      maxEvents: limits.eventsPerStream,
      maxBytes: limits.eventBytes,
    },
  });
  const runs = createRuns(base, { limits, events, admit: dispatches.admit });
  const schedules = createSchedules(base, { startRun: runs.startRun });
  const outcomes = createOutcomes(base);
  const mayForget = createForgetting(base, { lease, events });
  const parts = [dispatches, runs, schedules, outcomes];
  const tenure = createTenure(core, parts);
  const load = createLoadReader(base, dispatches.attached);
  const started = Promise.withResolvers<void>();
  let state: "new" | "started" | "closed" = "new";
  let drained: Promise<void> | undefined;

  /** Wraps a read: it works until the drain has written everything, and gives store faults as errors of kit. */
  function reading<Arguments extends unknown[], Result>(
    read: (...given: Arguments) => Promise<Result>,
  ): (...given: Arguments) => Promise<Result> {
    return async (...given) => {
      if (!base.database.isOpen) throw closing();
      core.file.check(checkEveryMs);
      return await read(...given).catch((error: unknown) => {
        throw core.faults.toError(error);
      });
    };
  }

  function checkOpen(): void {
    if (state === "closed") throw closing();
  }

  async function drain(timeoutMs: number): Promise<void> {
    state = "closed";
    started.resolve();
    base.lines.close({ clear: true });
    core.drain();
    const { lines } = base;
    if (await endsWithin(timeoutMs, lines.slotsFree(), clock)) {
      await endsWithin(Math.min(timeoutMs, approvalPatienceMs), lines.idle(), clock);
    }
    core.stop();
    await endsWithin(abortPatienceMs, lines.idle(), clock);
    try {
      events.close();
    } finally {
      await tenure.end();
      for (const part of parts) part.close(closing());
      await core.close();
    }
  }

  return {
    capabilities: { durable: folder !== undefined, distributed: false },
    events,
    problem: () => (state === "closed" ? undefined : (core.file.problem() ?? events.problem())),
    load: reading(async () => load()),
    async start(handlers: EngineHandlers) {
      checkOpen();
      if (state === "started") throw alreadyStarted();
      state = "started";
      try {
        await tenure.start(handlers);
      } catch (error) {
        state = "new";
        throw error;
      }
      started.resolve();
    },
    drain: ({ timeoutMs = 30_000 } = {}) => {
      drained ??= drain(timeoutMs);
      return drained;
    },
    async admit(request) {
      checkOpen();
      return await dispatches.admit(request);
    },
    async inLine(place, work, how) {
      checkOpen();
      if (state === "new") {
        // Work of callers goes behind the inputs that were accepted before, so it waits until those are in line.
        await raceSignal(started.promise, how?.signal);
        checkOpen();
      }
      if (!lease.isHeld) throw closing();
      return await dispatches.inLine(place, work, how);
    },
    async once(key, work) {
      checkOpen();
      return await outcomes.once(key, work);
    },
    getDispatch: reading(dispatches.getDispatch),
    listDispatches: reading(dispatches.listDispatches),
    awaitDispatch: reading(dispatches.awaitDispatch),
    cancelDispatch: reading(dispatches.cancelDispatch),
    listDeadLetters: reading(dispatches.listDeadLetters),
    redrive: reading(dispatches.redrive),
    mayForget: reading(mayForget),

    async startRun(request) {
      checkOpen();
      return await runs.startRun(request);
    },
    getRun: reading(runs.getRun),
    listRuns: reading(runs.listRuns),
    awaitRun: reading(runs.awaitRun),
    cancelRun: reading(runs.cancelRun),
    signal: reading(runs.signal),

    putSchedule: reading(schedules.putSchedule),
    deleteSchedule: reading(schedules.deleteSchedule),
    listSchedules: reading(schedules.listSchedules),
  };
}

function alreadyStarted(): KitError {
  return new KitError({ code: "conflict", message: "The engine has been started already." });
}

/** `Engine.mayForget`. */
function createForgetting(
  { database, lines, time }: EmbeddedBase,
  { lease, events }: { readonly lease: LeaseHolder; readonly events: Pick<EmbeddedEventLog, "isRead"> },
): (key: SessionKey, touchedMs: number) => Promise<boolean> {
  const input = query(
    database,
    `SELECT 1 FROM dispatches INDEXED BY dispatches_by_instance
     WHERE instance_id = ? AND agent = ? AND status IN ('queued', 'running') LIMIT 1`,
  );
  const run = query(
    database,
    `SELECT 1 FROM runs INDEXED BY runs_by_status
     WHERE status <> 'completed' AND status IN ('queued', 'running', 'waiting') AND (accepted_at <= ? OR run_id = ?) LIMIT 1`,
  );
  return async (key, touchedMs) => {
    const { agent, instance_id } = key;
    if (!(lease.isHeld || lease.isFree()) || !time.mayRemove()) return false;
    if (lines.waiting({ line: lineOf(key) }) > 0 || events.isRead(agentStream(agent, instance_id)))
      return false;
    return input.get(instance_id, agent) === undefined && run.get(touchedMs, instance_id) === undefined;
  };
}

/** Counts what waits and runs; `attached` are the inputs that wait without being stored. */
function createLoadReader({ database }: EmbeddedBase, attached: () => number): () => EngineLoad {
  // Counters and partial indexes keep the cost independent of completed work. `status <> 'completed'` repeats the
  // condition of the partial indexes, which SQLite otherwise does not use.
  const read = query<EngineLoad>(
    database,
    `SELECT (SELECT waiting FROM dispatch_load) AS queued_dispatches,
       coalesce((SELECT waiting FROM run_shares WHERE owner = ''), 0) AS queued_runs,
       (SELECT count(*) FROM runs WHERE status = 'running' AND status <> 'completed') AS running_runs,
       (SELECT count(*) FROM runs WHERE status = 'waiting' AND status <> 'completed') AS waiting_runs,
       (SELECT count(*) FROM dispatches WHERE status = 'failed' AND status <> 'completed') AS dead_letters`,
  );
  return () => {
    const load = read.get();
    if (load === undefined) throw new Error("SQLite gave no row back.");
    return { ...load, queued_dispatches: load.queued_dispatches + attached() };
  };
}
