import { version } from "../../base/own-package.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { agentStream } from "../../protocol/session-name.ts";
import type { Engine, EngineHandlers } from "../contract.ts";
import { Deliveries } from "../shared/deliveries.ts";
import { closing, defaultLimits, leaseLost } from "../shared/engine-base.ts";
import { type EngineOwnership, EngineShell, Stops } from "../shared/engine-shell.ts";
import { retentionOf, StoredEventLog } from "../shared/events/event-log.ts";
import { Outcomes } from "../shared/outcomes.ts";
import { JobQueue } from "../shared/queue/job-queue.ts";
import { lineOf } from "../shared/queue/owners.ts";
import { Schedules } from "../shared/schedules.ts";
import { parseStored } from "../shared/stored-rows.ts";
import { WaitingCallRecords } from "../shared/waiting-calls.ts";
import { AskedWork, type BriefEngine, pollMs } from "./asked-work.ts";
import { CalledWork, type Executor, findMs } from "./called-work.ts";
import { PostgresCluster } from "./cluster.ts";
import { hasOpenWork } from "./dispatch-rows.ts";
import { PostgresDispatches } from "./dispatches.ts";
import { DatabaseClock, type EngineDatabase } from "./engine-database.ts";
import { PostgresEventRows } from "./event-rows.ts";
import { type News, NewsWire } from "./news.ts";
import { Ownership } from "./ownership.ts";
import { open, type PostgresBase, type PostgresEngineOptions, toText } from "./postgres-base.ts";
import { clusterState, engineLoad } from "./read-cluster-state.ts";
import { PostgresRuns } from "./runs.ts";
import { sweepMs, sweepPace } from "./searches.ts";
import { shardOf, shardOfJob } from "./shards.ts";
import {
  createDeliveryRows,
  createOutcomeRows,
  createScheduleRows,
  pruneDeliveries,
} from "./small-stores.ts";
import { createWaitingCallRows, pruneWaitingCalls } from "./waiting-calls.ts";

/** How often a node looks for attempts that were claimed while their shard changed its owner. */
const recoverMs = 5_000;
const pruneMs = 60_000;
/** Opens the engine of a serverless function. Throws like `createPostgresEngine`. */
export async function createBriefEngine(options: PostgresEngineOptions): Promise<BriefEngine> {
  return new PostgresEngine(await open(options), options, { takes: "asked" }).toBriefEngine();
}

/** Opens an engine whose nodes are called for their work by an external executor. Throws like `createPostgresEngine`. */
export async function createCalledEngine(
  options: PostgresEngineOptions,
  executor: Executor,
): Promise<Engine> {
  return new PostgresEngine(await open(options), options, { takes: "called", executor }).toEngine();
}

/**
 * The engine that several machines share: it stores accepted work in Postgres, and one node at a time owns each instance
 * and each run. Any node accepts work and answers queries; the owner does the work.
 *
 * Throws `invalid_request` if the address is not a Postgres address, `store_unavailable` if the database cannot be reached,
 * and `unavailable` if the package `pg` is missing or the tables were migrated by a newer kit.
 */
export async function createPostgresEngine(options: PostgresEngineOptions): Promise<Engine> {
  return new PostgresEngine(await open(options), options).toEngine();
}

/** How nodes get their work: they share the shards, a function takes what it is asked for, or an executor calls them. */
interface WorkSource {
  readonly takes?: "share" | "asked" | "called";
  /** Set if it calls them. */
  readonly executor?: Executor;
}

class PostgresEngine {
  readonly #database: EngineDatabase;
  readonly #base: PostgresBase;
  readonly #ownership: Ownership;
  readonly #news: NewsWire;
  readonly #clock = new DatabaseClock();
  readonly #events: StoredEventLog;
  readonly #dispatches: PostgresDispatches;
  readonly #runs: PostgresRuns;
  readonly #schedules: Schedules;
  readonly #waitingCalls: WaitingCallRecords;
  readonly #shell: EngineShell;
  #askedWork: AskedWork | undefined;
  #calledWork: CalledWork | undefined;
  readonly #stops = new Stops();
  readonly #over = new AbortController();
  readonly #background: Promise<void>[] = [];
  /** Gained shards whose work is not taken over yet, because the database failed. */
  readonly #pendingShards = new Set<number>();
  #handlers: EngineHandlers | undefined;

  constructor(
    database: EngineDatabase,
    options: PostgresEngineOptions,
    { takes = "share", executor }: WorkSource = {},
  ) {
    const clock = this.#clock;
    const limits = { ...defaultLimits, ...options.limits };
    this.#database = database;
    this.#news = new NewsWire({
      database,
      clock,
      isMute: options.isMute,
      listens: takes !== "asked",
      others: () => this.#ownership.others,
      receiveNews: (news) => this.#receiveNews(news),
    });
    this.#ownership = new Ownership({
      database,
      clock,
      takes,
      version: options.version ?? version,
      project: options.project,
      newsAgeMs: () => this.#news.ageMs,
      problem: () => this.#calledWork?.problem(),
      announceFree: () => this.#news.publish(["shards"]),
      onGained: (shards) => this.#takeOver(shards),
      onLost: (shards) => this.#lose(shards),
      isIdle: (shard) => this.#dispatches.isIdle(shard) && this.#runs.isIdle(shard),
      beforeRelease: (shards) => this.#events.release(new Set(shards)),
    });
    const base: PostgresBase = {
      clock,
      time: clock,
      limits,
      database,
      ownership: this.#ownership,
      news: this.#news,
      blobs: { store: async (value) => toText(value), load: parseStored, size: (text) => text.length },
      queue: new JobQueue({ clock, slots: limits.running, isLate: () => !this.#ownership.isInTouch }),
      stopping: this.#stops.stopping.signal,
      draining: this.#stops.draining.signal,
      leavesAtSteps: takes === "asked",
      leaseOf: (owned) => this.#ownership.leaseOfShard(shardOf(owned)),
      checkLease: (owned, fence) => this.#checkLease(shardOf(owned), fence),
      handlers: () => this.#handlers,
      wake: (keys) =>
        executor === undefined ? this.#ownership.want(keys.map(shardOf)) : executor.wake(keys),
    };
    this.#base = base;
    if (executor !== undefined) this.#calledWork = new CalledWork(base, executor);
    if (takes === "asked")
      this.#askedWork = new AskedWork(base, {
        resumeHeld: () => this.#runs.resumeHeld(),
        startScheduled: () => this.#schedules.fire(),
        prune: () => this.#prune(),
        isPolling: () => this.#dispatches.isPolling || this.#runs.isPolling,
      });
    const rows = new PostgresEventRows(base);
    this.#events = new StoredEventLog({ rows, clock, retention: retentionOf(limits) });
    this.#dispatches = new PostgresDispatches(base);
    this.#runs = new PostgresRuns(base, {
      events: this.#events,
      admit: (request) => this.#dispatches.admit(request),
    });
    this.#schedules = new Schedules(base, {
      store: createScheduleRows(base),
      startRun: (request) => this.#runs.startRun(request),
      isWorking: () => this.#shell.isWorking && this.#askedWork?.takesAll !== false,
    });
    this.#waitingCalls = new WaitingCallRecords(createWaitingCallRows(base));
    this.#shell = new EngineShell({
      capabilities: { durable: true, distributed: true },
      ...{
        clock,
        queue: base.queue,
        stops: this.#stops,
        events: this.#events,
        ownership: this.#toOwnership(),
      },
      ...{ dispatches: this.#dispatches, runs: this.#runs, schedules: this.#schedules },
      outcomes: new Outcomes(base, createOutcomeRows(base)),
      deliveries: new Deliveries(base, createDeliveryRows(base)),
      waitingCalls: this.#waitingCalls,
      load: () => engineLoad(base, this.#dispatches.attached()),
      mayForget: (key, touchedMs) => this.#mayForget(key, touchedMs),
    });
    this.#news.start();
    // Also needed before `start`: a process that only accepts work has callers that wait for ends.
    this.#background.push(
      this.#everySweep(async () => {
        await this.#dispatches.wakeEnded();
        await this.#runs.wakeEnded();
        await this.#waitingCalls.check();
      }),
    );
  }

  toEngine(): Engine {
    const base = this.#base;
    return {
      ...this.#shell.toEngine(),
      cluster: new PostgresCluster(base),
      warning: () => this.#calledWork?.problem(),
      state: async () => {
        this.#checkOpen();
        return { ...(await clusterState(base)), engine: this.#calledWork?.name ?? "postgres" };
      },
    };
  }

  toBriefEngine(): BriefEngine {
    return {
      ...this.toEngine(),
      takeDue: async () => {
        this.#checkOpen();
        await this.#askedWork?.takeDue();
      },
      atRest: async () => await this.#askedWork?.atRest(),
    };
  }

  #checkOpen(): void {
    if (this.#shell.isClosed) throw closing();
  }

  #toOwnership(): EngineOwnership {
    return {
      checkOpen: () => {
        if (this.#over.signal.aborted) throw closing();
      },
      toError: (error) => error,
      start: (handlers) => this.#start(handlers),
      // Clears the queue and releases the shards: the next owners load the waiting work from the rows.
      leave: () => this.#ownership.drain(),
      settle: async () => {
        this.#over.abort();
        this.#schedules.stop();
        await Promise.all(this.#background);
        await this.#calledWork?.stop();
      },
      // If the database is unavailable, the end of the connection releases the shards, and the next writers continue after a gap.
      closeEvents: () => this.#events.close(new Set(this.#ownership.shards)).catch(() => undefined),
      end: async () => {
        await this.#ownership.stop();
        this.#news.publish(["shards"]);
        await this.#news.stop();
        this.#dispatches.close(closing());
        this.#runs.close(closing());
        await this.#database.close();
      },
    };
  }

  async #start(handlers: EngineHandlers): Promise<void> {
    this.#handlers = handlers;
    this.#base.queue.open();
    try {
      await this.#ownership.start();
      await this.#schedules.arm();
      await this.#calledWork?.start();
    } catch (error) {
      this.#handlers = undefined;
      throw error;
    }
    const { askedWork, calledWork } = { askedWork: this.#askedWork, calledWork: this.#calledWork };
    this.#background.push(
      this.#everySweep(() => this.#sweep()),
      this.#every(recoverMs, () => this.#takeOver(this.#ownership.shards)),
      this.#every(recoverMs, () => this.#schedules.arm()),
      ...(askedWork === undefined ? [] : [this.#every(pollMs, () => askedWork.poll())]),
      ...(calledWork === undefined ? [] : [this.#every(findMs, () => calledWork.find())]),
      this.#every(pruneMs, () => this.#prune()),
    );
  }

  /** Repeats a task until the engine closes. A failed task runs again after the next pause. */
  async #every(ms: number, task: () => Promise<void>): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      await this.#clock.sleep(ms, signal).catch(() => undefined);
      if (!signal.aborted) await task().catch(() => undefined);
    }
  }

  /** Repeats a search for what news tell: often if they do not arrive, or if something that failed has to be repeated. */
  async #everySweep(search: () => Promise<void>): Promise<void> {
    const isDue = sweepPace();
    await this.#every(sweepMs, async () => {
      if (isDue(this.#news.arrives && this.#pendingShards.size === 0)) await search();
    });
  }

  async #sweep(): Promise<void> {
    await this.#takeOver([...this.#pendingShards]);
    await this.#dispatches.sweep();
    await this.#runs.sweep();
  }

  /** Requeues the work that other nodes were running in these shards, and enqueues the waiting work. */
  async #takeOver(shards: readonly number[]): Promise<void> {
    if (shards.length === 0) return;
    for (const shard of shards) this.#pendingShards.add(shard);
    await this.#dispatches.takeOver(shards);
    await this.#runs.takeOver(shards);
    for (const shard of shards) this.#pendingShards.delete(shard);
  }

  #lose(shards: ReadonlySet<number>): void {
    for (const shard of shards) this.#pendingShards.delete(shard);
    this.#runs.leave(shards, leaseLost());
    this.#base.queue.forget((job) => shards.has(shardOfJob(job)));
    this.#events.forget(shards);
  }

  #receiveNews(news: News): void {
    const [kind, id = ""] = news;
    if (kind === "echo") return;
    if (kind === "shards") this.#ownership.hurry();
    else if (kind === "session")
      this.#dispatches.onQueued({ agent: id, instance_id: news[2], session: news[3] });
    else if (kind === "run") this.#runs.onQueued(id);
    else if (kind === "signal") this.#runs.onSignal(id);
    else if (kind === "ended_elsewhere") void this.#runs.onEndedElsewhere(id).catch(() => undefined);
    else if (kind === "stream") this.#events.onWritten(id);
    else if (kind === "approval") this.#waitingCalls.onNews(id);
    else if (kind === "schedule") void this.#schedules.arm().catch(() => undefined);
    else
      for (const part of [this.#dispatches, this.#runs]) {
        if (kind === "ended") part.onEnded(id);
        else if (kind === "cancel") part.onCancel(id);
      }
  }

  async #checkLease(shard: number, fence: number): Promise<void> {
    const row = await this.#database.row(
      "SELECT 1 FROM $s.shards WHERE shard = $1 AND fence = $2 AND node = $3",
      [shard, fence, this.#ownership.node],
    );
    if (row === undefined || this.#ownership.leaseOfShard(shard).signal.aborted) throw leaseLost();
  }

  /** On the keeper: removes what is older than the retention period. */
  async #prune(): Promise<void> {
    if (!this.#ownership.isKeeper) return;
    const before = this.#clock.now() - this.#base.limits.retentionMs;
    const batches = [
      () => this.#dispatches.prune(before),
      () => this.#runs.prune(before),
      () => this.#events.removeOld(),
      () => pruneWaitingCalls(this.#base, before),
    ];
    for (const prune of batches) while (this.#ownership.isKeeper && (await prune()));
    await pruneDeliveries(this.#base, before);
    await this.#database.run("DELETE FROM $s.outcomes WHERE coalesce(done_at, claimed_until) < $1", [before]);
  }

  async #mayForget({ agent, instance_id, session }: SessionKey, touchedMs: number): Promise<boolean> {
    const owned = { agent, instance_id };
    await this.#calledWork?.tryHold(owned);
    if (this.#ownership.leaseOfShard(shardOf(owned)).signal.aborted) return false;
    if (this.#base.queue.waiting({ line: lineOf({ ...owned, session }) }) > 0) return false;
    if (this.#events.isRead(agentStream(agent, instance_id))) return false;
    return !(await hasOpenWork(this.#database, owned, touchedMs));
  }
}
