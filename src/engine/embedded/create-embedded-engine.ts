import { type Clock, isoTime } from "../../base/clock.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { agentStream } from "../../protocol/session-name.ts";
import { type Database, query } from "../../sqlite/statements.ts";
import type { Engine, EngineLoad } from "../contract.ts";
import { Deliveries } from "../shared/deliveries.ts";
import { createMachineClock } from "../shared/durable-time.ts";
import { closing, defaultLimits, type EngineLimits } from "../shared/engine-base.ts";
import { type EngineOwnership, EngineShell } from "../shared/engine-shell.ts";
import { retentionOf, type StoredEventLog } from "../shared/events/event-log.ts";
import { Outcomes } from "../shared/outcomes.ts";
import { lineOf } from "../shared/queue/owners.ts";
import { EmbeddedDispatches } from "./dispatches/dispatches.ts";
import type { EmbeddedBase } from "./embedded-base.ts";
import { createEngineCore, createTenure } from "./engine-core.ts";
import { openEventLog } from "./events/event-log.ts";
import type { LeaseHolder } from "./lease.ts";
import { EmbeddedRuns } from "./runs/runs.ts";
import { createDeliveryRows, createOutcomeRows, createSchedules } from "./small-stores.ts";
import { createWaitingCalls } from "./waiting-calls.ts";

export interface EmbeddedEngineOptions {
  /** The folder that stores the work; created if missing. Without a folder, work is in memory and lost with the process. */
  readonly folder?: string | undefined;
  /**
   * Files of other SQLite stores of kit. When a process begins to work, it compares them with the folder: `warning` returns what one
   * of the databases has lost.
   */
  readonly beside?: readonly string[] | undefined;
  /** Instead of a folder: opens the tables of a store in a database that only this process uses. */
  readonly open?: ((store: "engine" | "events") => Database) | undefined;
  /** Called after each commit. */
  readonly onCommit?: (() => void) | undefined;
  readonly clock?: Clock | undefined;
  /** Omitted limits have their defaults. */
  readonly limits?: Partial<EngineLimits>;
}

/** Reads check at most this often whether the database file still exists. */
const checkEveryMs = 10;
/**
 * The engine of one machine: it stores accepted work with SQLite in a folder. Several processes can share the folder: one
 * of them runs the work, the others only accept work, and one of these takes over when the first process ends.
 *
 * Throws `unavailable` if the folder's store is damaged or was written by a newer kit.
 */
export function createEmbeddedEngine(options: EmbeddedEngineOptions = {}): Engine {
  const { clock = createMachineClock(), folder, beside, open, onCommit } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const core = createEngineCore({ folder, beside, database: open?.("engine"), onCommit, clock, limits });
  const { base, lease, stops } = core;
  const dispatches = new EmbeddedDispatches(base, limits);
  const events = openEventLog({
    folder,
    database: open?.("events"),
    clock,
    lease,
    mayRemove: base.time.mayRemove,
    retention: retentionOf(limits),
  });
  const admit: Engine["admit"] = (request) => dispatches.admit(request);
  const runs = new EmbeddedRuns(base, { limits, events, admit });
  const scheduling = createSchedules(base, { startRun: (request) => runs.startRun(request) });
  const outcomeRows = createOutcomeRows(base);
  const deliveryRows = createDeliveryRows(base, limits);
  const waitingCalls = createWaitingCalls(base);
  const smallParts = [scheduling.part, outcomeRows.part, deliveryRows.part, waitingCalls.part];
  const parts = [dispatches, runs, ...smallParts];
  const tenure = createTenure(core, parts);
  const ownership: EngineOwnership = {
    checkOpen() {
      if (!base.database.isOpen) throw closing();
      core.file.check(checkEveryMs);
    },
    toError: (error) => core.faults.toError(error),
    start: (handlers) => tenure.start(handlers),
    closeEvents: () => events.close(),
    async end() {
      await tenure.end();
      for (const part of parts) part.close(closing());
      await core.close();
    },
  };
  const readLoad = createLoadReader(base, () => dispatches.attached());
  const shell = new EngineShell({
    capabilities: { durable: (folder ?? open) !== undefined, distributed: false },
    ...{ clock, queue: base.queue, stops, events, dispatches, runs, ownership },
    schedules: scheduling.schedules,
    outcomes: new Outcomes(base, outcomeRows.store),
    deliveries: new Deliveries(base, deliveryRows.store),
    waitingCalls: waitingCalls.records,
    load: async () => readLoad(),
    mayForget: createForgetting(base, { lease, events }),
  });
  const { leave: _, ...engine } = shell.toEngine();
  return {
    ...engine,
    problem: () => (shell.isClosed ? undefined : (core.file.problem() ?? events.problem())),
    warning: () => core.lostWork?.problem(),
  };
}

/** `Engine.mayForget`. */
function createForgetting(
  { database, queue, time }: EmbeddedBase,
  { lease, events }: { readonly lease: LeaseHolder; readonly events: Pick<StoredEventLog, "isRead"> },
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
    if (queue.waiting({ line: lineOf(key) }) > 0 || events.isRead(agentStream(agent, instance_id)))
      return false;
    return input.get(instance_id, agent) === undefined && run.get(touchedMs, instance_id) === undefined;
  };
}

/** Counts waiting and running work; `attached` returns the number of inputs that wait without being stored. */
function createLoadReader({ database }: EmbeddedBase, attached: () => number): () => EngineLoad {
  // Counters and partial indexes keep the cost independent of completed work. `status <> 'completed'` repeats the
  // condition of the partial indexes, which SQLite otherwise does not use.
  const read = query<Omit<EngineLoad, "oldest_queued_at"> & { readonly oldest: number | null }>(
    database,
    `SELECT (SELECT waiting FROM dispatch_load) AS queued_dispatches,
       coalesce((SELECT waiting FROM run_shares WHERE owner = ''), 0) AS queued_runs,
       (SELECT count(*) FROM dispatches WHERE status = 'running' AND status <> 'completed') AS running_dispatches,
       (SELECT count(*) FROM runs WHERE status = 'running' AND status <> 'completed') AS running_runs,
       (SELECT count(*) FROM runs WHERE status = 'waiting' AND status <> 'completed') AS waiting_runs,
       (SELECT count(*) FROM runs WHERE problem IS NOT NULL AND status = 'waiting') AS held_runs,
       (SELECT count(*) FROM dispatches WHERE status = 'failed' AND status <> 'completed') AS dead_letters,
       (SELECT min(at) FROM (
         SELECT min(accepted_at) AS at FROM dispatches WHERE status = 'queued' AND status <> 'completed' AND started_at IS NULL
         UNION ALL SELECT min(accepted_at) FROM runs WHERE status = 'queued' AND status <> 'completed' AND started_at IS NULL
       )) AS oldest`,
  );
  return () => {
    const load = read.get();
    if (load === undefined) throw new Error("SQLite returned no row.");
    const { oldest, ...counts } = load;
    return {
      ...counts,
      queued_dispatches: load.queued_dispatches + attached(),
      ...(oldest === null ? {} : { oldest_queued_at: isoTime(oldest) }),
    };
  };
}
