import { endsWithin, raceSignal } from "../../base/abort.ts";
import { type Clock, isoTime } from "../../base/clock.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { type Database, query } from "../../sqlite/statements.ts";
import type { Engine, EngineHandlers, EngineLoad } from "../contract.ts";
import { agentStream } from "../event-log-contract.ts";
import { Deliveries } from "../shared/deliveries.ts";
import { createMachineClock } from "../shared/durable-time.ts";
import { alreadyStarted, closing, defaultLimits, type EngineLimits } from "../shared/engine-base.ts";
import { engineCalls } from "../shared/engine-calls.ts";
import { Outcomes } from "../shared/outcomes.ts";
import { lineOf } from "../shared/queue/owners.ts";
import type { Schedules } from "../shared/schedules.ts";
import type { WaitingCallRecords } from "../shared/waiting-calls.ts";
import { Dispatches } from "./dispatches/dispatches.ts";
import type { EmbeddedBase, EnginePart } from "./embedded-base.ts";
import { createEngineCore, createTenure, type EngineCore, type Tenure } from "./engine-core.ts";
import { EmbeddedEventLog } from "./events/event-log.ts";
import type { LeaseHolder } from "./lease.ts";
import { Runs } from "./runs/runs.ts";
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

/** How long a drain waits for a handler that ignores its aborted signal. */
const abortPatienceMs = 2_000;
/** Reads check at most this often whether the database file still exists. */
const checkEveryMs = 10;
/** How long a drain waits for work that waits for an approval, which can take days. */
const approvalPatienceMs = 5_000;

/**
 * The engine of one machine: it stores accepted work with SQLite in a folder. Several processes can share the folder: one
 * of them runs the work, the others only accept work, and one of these takes over when the first process ends.
 *
 * Throws `unavailable` if the folder's store is damaged or was written by a newer kit.
 */
export function createEmbeddedEngine(options: EmbeddedEngineOptions = {}): Engine {
  return new EmbeddedEngine(options).toEngine();
}

class EmbeddedEngine {
  readonly #core: EngineCore;
  readonly #isDurable: boolean;
  readonly #events: EmbeddedEventLog;
  readonly #dispatches: Dispatches;
  readonly #runs: Runs;
  readonly #schedules: Schedules;
  readonly #outcomes: Outcomes;
  readonly #deliveries: Deliveries;
  readonly #waitingCalls: WaitingCallRecords;
  readonly #parts: readonly EnginePart[];
  readonly #tenure: Tenure;
  readonly #started = Promise.withResolvers<void>();
  #state: "new" | "started" | "closed" = "new";
  #drained: Promise<void> | undefined;

  constructor({
    clock = createMachineClock(),
    folder,
    beside,
    open,
    onCommit,
    ...options
  }: EmbeddedEngineOptions) {
    const limits = { ...defaultLimits, ...options.limits };
    const core = createEngineCore({ folder, beside, database: open?.("engine"), onCommit, clock, limits });
    const { base, lease } = core;
    this.#core = core;
    this.#isDurable = (folder ?? open) !== undefined;
    this.#dispatches = new Dispatches(base, limits);
    this.#events = new EmbeddedEventLog({
      folder,
      database: open?.("events"),
      clock,
      lease,
      mayRemove: base.time.mayRemove,
      retention: {
        maxAgeMs: limits.retentionMs,
        maxEvents: limits.eventsPerStream,
        maxBytes: limits.eventBytes,
      },
    });
    this.#runs = new Runs(base, {
      limits,
      events: this.#events,
      admit: (request) => this.#dispatches.admit(request),
    });
    const scheduling = createSchedules(base, { startRun: (request) => this.#runs.startRun(request) });
    this.#schedules = scheduling.schedules;
    const outcomeRows = createOutcomeRows(base);
    this.#outcomes = new Outcomes(base, outcomeRows.store);
    const deliveryRows = createDeliveryRows(base, limits);
    this.#deliveries = new Deliveries(base, deliveryRows.store);
    const waitingCalls = createWaitingCalls(base);
    this.#waitingCalls = waitingCalls.records;
    const smallParts = [scheduling.part, outcomeRows.part, deliveryRows.part, waitingCalls.part];
    this.#parts = [this.#dispatches, this.#runs, ...smallParts];
    this.#tenure = createTenure(core, this.#parts);
  }

  toEngine(): Engine {
    const { base, lease } = this.#core;
    const parts = {
      dispatches: this.#dispatches,
      runs: this.#runs,
      schedules: this.#schedules,
      outcomes: this.#outcomes,
    };
    const load = createLoadReader(base, () => this.#dispatches.attached());
    const mayForget = createForgetting(base, { lease, events: this.#events });
    /** Wraps a call that works until the end of the drain, and converts faults of the store to errors of kit. */
    const reading =
      <Arguments extends unknown[], Result>(read: (...args: Arguments) => Promise<Result>) =>
      async (...args: Arguments): Promise<Result> => {
        if (!base.database.isOpen) throw closing();
        this.#core.file.check(checkEveryMs);
        return await read(...args).catch((error: unknown) => {
          throw this.#core.faults.toError(error);
        });
      };
    /** Wraps a call that works until the drain begins. */
    const open =
      <Arguments extends unknown[], Result>(call: (...args: Arguments) => Promise<Result>) =>
      async (...args: Arguments): Promise<Result> => {
        this.#checkOpen();
        return await call(...args);
      };
    return {
      capabilities: { durable: this.#isDurable, distributed: false },
      events: this.#events,
      deliveries: {
        record: (delivery) => this.#deliveries.record(delivery),
        list: reading((filter) => this.#deliveries.list(filter)),
      },
      waitingCalls: {
        add: reading((call, onDecided) => this.#waitingCalls.add(call, onDecided)),
        decide: reading((...decision) => this.#waitingCalls.decide(...decision)),
        list: reading((within) => this.#waitingCalls.list(within)),
      },
      problem: () =>
        this.#state === "closed" ? undefined : (this.#core.file.problem() ?? this.#events.problem()),
      warning: () => this.#core.lostWork?.problem(),
      load: reading(async () => load()),
      ...engineCalls(parts, { accepting: open, reading }),
      start: open((handlers) => this.#start(handlers)),
      drain: ({ timeoutMs = 30_000 } = {}) => {
        this.#drained ??= this.#drain(timeoutMs);
        return this.#drained;
      },
      inLine: async (place, work, how) => {
        this.#checkOpen();
        if (this.#state === "new") {
          // The work comes after the inputs that were accepted before, so it waits until those are in line.
          await raceSignal(this.#started.promise, how?.signal);
          this.#checkOpen();
        }
        if (!lease.isHeld) throw closing();
        return await this.#dispatches.inLine(place, work, how);
      },
      mayForget: reading(mayForget),
    };
  }

  #checkOpen(): void {
    if (this.#state === "closed") throw closing();
  }

  async #start(handlers: EngineHandlers): Promise<void> {
    if (this.#state === "started") throw alreadyStarted();
    this.#state = "started";
    try {
      await this.#tenure.start(handlers);
    } catch (error) {
      this.#state = "new";
      throw error;
    }
    this.#started.resolve();
  }

  async #drain(timeoutMs: number): Promise<void> {
    const { base, ...core } = this.#core;
    const { clock, queue } = base;
    this.#state = "closed";
    this.#started.resolve();
    queue.close({ clear: true });
    core.drain();
    if (await endsWithin(timeoutMs, queue.slotsFree(), clock)) {
      await endsWithin(Math.min(timeoutMs, approvalPatienceMs), queue.idle(), clock);
    }
    core.stop();
    await this.#deliveries.close();
    await endsWithin(abortPatienceMs, queue.idle(), clock);
    try {
      this.#events.close();
    } finally {
      await this.#tenure.end();
      for (const part of this.#parts) part.close(closing());
      await core.close();
    }
  }
}

/** `Engine.mayForget`. */
function createForgetting(
  { database, queue, time }: EmbeddedBase,
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
