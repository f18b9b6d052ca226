import { endsWithin, raceSignal } from "../../base/abort.ts";
import { version } from "../../base/own-package.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { Engine, EngineHandlers } from "../contract.ts";
import { agentStream } from "../event-log-contract.ts";
import { Deliveries } from "../shared/deliveries.ts";
import { alreadyStarted, closing, defaultLimits, leaseLost, stopped } from "../shared/engine-base.ts";
import { engineCalls } from "../shared/engine-calls.ts";
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
import { Dispatches } from "./dispatches.ts";
import { DatabaseClock, type EngineDatabase } from "./engine-database.ts";
import { PostgresEventLog } from "./event-log.ts";
import { pruneBytes, pruneEvents, pruneStreams } from "./event-rows.ts";
import { type News, NewsWire } from "./news.ts";
import { Ownership } from "./ownership.ts";
import { open, type PostgresBase, type PostgresEngineOptions, toText } from "./postgres-base.ts";
import { clusterState, engineLoad } from "./read-cluster-state.ts";
import { Runs } from "./runs.ts";
import { shardOf, shardOfJob } from "./shards.ts";
import {
  createDeliveryRows,
  createOutcomeRows,
  createScheduleRows,
  pruneDeliveries,
} from "./small-stores.ts";
import { createWaitingCallRows, pruneWaitingCalls } from "./waiting-calls.ts";

/** How often a node polls the rows for work and ends without news. */
const sweepMs = 250;
/** How often a node looks for attempts that were claimed while their shard changed its owner. */
const recoverMs = 5_000;
const pruneMs = 60_000;
/** How long a drain waits for a handler that ignores its aborted signal. */
const abortPatienceMs = 2_000;
/** How long a drain waits for work that waits for an approval, which can take days. */
const approvalPatienceMs = 5_000;

/** Opens the engine of a serverless function. Throws like `createPostgresEngine`. */
export async function createBriefEngine(options: PostgresEngineOptions): Promise<BriefEngine> {
  return new PostgresEngine(await open(options), options, "asked").toBriefEngine();
}

/** Opens an engine whose nodes are called for their work by an external executor. Throws like `createPostgresEngine`. */
export async function createCalledEngine(
  options: PostgresEngineOptions,
  executor: Executor,
): Promise<Engine> {
  return new PostgresEngine(await open(options), options, executor).toEngine();
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

class PostgresEngine {
  readonly #database: EngineDatabase;
  readonly #base: PostgresBase;
  readonly #ownership: Ownership;
  readonly #news: NewsWire;
  readonly #clock = new DatabaseClock();
  readonly #events: PostgresEventLog;
  readonly #dispatches: Dispatches;
  readonly #runs: Runs;
  readonly #schedules: Schedules;
  readonly #outcomes: Outcomes;
  readonly #deliveries: Deliveries;
  readonly #waitingCalls: WaitingCallRecords;
  readonly #cluster: PostgresCluster;
  #askedWork: AskedWork | undefined;
  #calledWork: CalledWork | undefined;
  readonly #stopping = new AbortController();
  readonly #draining = new AbortController();
  readonly #over = new AbortController();
  readonly #started = Promise.withResolvers<void>();
  readonly #background: Promise<void>[] = [];
  /** Gained shards whose work is not taken over yet, because the database failed. */
  readonly #pendingShards = new Set<number>();
  #handlers: EngineHandlers | undefined;
  #state: "new" | "started" | "closed" = "new";
  #drained: Promise<void> | undefined;

  constructor(
    database: EngineDatabase,
    options: PostgresEngineOptions,
    mode: "share" | "asked" | Executor = "share",
  ) {
    const takes = typeof mode === "string" ? mode : "called";
    const clock = this.#clock;
    const limits = { ...defaultLimits, ...options.limits };
    this.#database = database;
    this.#news = new NewsWire({
      database,
      clock,
      isMute: options.isMute,
      listens: takes !== "asked",
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
      stopping: this.#stopping.signal,
      draining: this.#draining.signal,
      leavesAtSteps: takes === "asked",
      leaseOf: (owned) => this.#ownership.leaseOf(owned),
      checkLease: (owned, fence) => this.#checkLease(shardOf(owned), fence),
      handlers: () => this.#handlers,
      wake: (keys) => (typeof mode === "string" ? this.#ownership.want(keys.map(shardOf)) : mode.wake(keys)),
    };
    this.#base = base;
    if (typeof mode !== "string") this.#calledWork = new CalledWork(base, mode);
    if (takes === "asked")
      this.#askedWork = new AskedWork(base, {
        resumeHeld: () => this.#runs.resumeHeld(),
        startScheduled: () => this.#schedules.fire(),
        prune: () => this.#prune(),
        isPolling: () => this.#dispatches.isPolling || this.#runs.isPolling,
      });
    this.#events = new PostgresEventLog(base);
    this.#dispatches = new Dispatches(base);
    this.#runs = new Runs(base, {
      events: this.#events,
      admit: (request) => this.#dispatches.admit(request),
    });
    this.#schedules = new Schedules(base, {
      store: createScheduleRows(base),
      startRun: (request) => this.#runs.startRun(request),
      isWorking: () =>
        this.#state === "started" && !this.#draining.signal.aborted && this.#askedWork?.takesAll !== false,
    });
    this.#outcomes = new Outcomes(base, createOutcomeRows(base));
    this.#deliveries = new Deliveries(base, createDeliveryRows(base));
    this.#waitingCalls = new WaitingCallRecords(createWaitingCallRows(base));
    this.#cluster = new PostgresCluster(base);
    this.#news.start();
    // Also needed before `start`: a process that only accepts work has callers that wait for ends.
    this.#background.push(
      this.#every(sweepMs, async () => {
        await this.#dispatches.wakeEnded();
        await this.#runs.wakeEnded();
        await this.#waitingCalls.check();
      }),
    );
  }

  toEngine(): Engine {
    const open =
      <Arguments extends unknown[], Result>(call: (...args: Arguments) => Promise<Result>) =>
      async (...args: Arguments): Promise<Result> => {
        this.#checkOpen();
        return await call(...args);
      };
    /** Wraps a call that works until the end of the drain. */
    const reading =
      <Arguments extends unknown[], Result>(read: (...args: Arguments) => Promise<Result>) =>
      async (...args: Arguments): Promise<Result> => {
        if (this.#over.signal.aborted) throw closing();
        return await read(...args);
      };
    const base = this.#base;
    const parts = {
      dispatches: this.#dispatches,
      runs: this.#runs,
      schedules: this.#schedules,
      outcomes: this.#outcomes,
    };
    return {
      capabilities: { durable: true, distributed: true },
      events: this.#events,
      deliveries: {
        record: (delivery) => this.#deliveries.record(delivery),
        list: open((filter) => this.#deliveries.list(filter)),
      },
      waitingCalls: this.#waitingCalls,
      cluster: this.#cluster,
      warning: () => this.#calledWork?.problem(),
      load: open(() => engineLoad(base, this.#dispatches.attached())),
      state: open(async () => ({
        ...(await clusterState(base)),
        engine: this.#calledWork?.name ?? "postgres",
      })),
      ...engineCalls(parts, { accepting: open, reading }),
      start: (handlers) => this.#start(handlers),
      leave: open(() => this.#leave()),
      drain: ({ timeoutMs = 30_000 } = {}) => {
        this.#drained ??= this.#drain(timeoutMs);
        return this.#drained;
      },
      inLine: async (session, work, how) => {
        this.#checkOpen();
        // The work comes after the inputs that were accepted before, so it waits until those are in line.
        if (this.#state === "new") await raceSignal(this.#started.promise, how?.signal);
        this.#checkOpen();
        return await this.#dispatches.inLine(session, work, how);
      },
      mayForget: open((key, touchedMs) => this.#mayForget(key, touchedMs)),
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
    if (this.#state === "closed") throw closing();
  }

  async #start(handlers: EngineHandlers): Promise<void> {
    this.#checkOpen();
    if (this.#state === "started") throw alreadyStarted();
    this.#state = "started";
    this.#handlers = handlers;
    this.#base.queue.open();
    try {
      this.#news.startEcho(this.#ownership.node);
      await this.#ownership.start();
      await this.#schedules.arm();
      await this.#calledWork?.start();
    } catch (error) {
      this.#state = "new";
      this.#handlers = undefined;
      throw error;
    }
    this.#background.push(
      this.#every(sweepMs, () => this.#sweep()),
      this.#every(recoverMs, () => this.#takeOver(this.#ownership.shards)),
      this.#every(recoverMs, () => this.#schedules.arm()),
      ...(this.#askedWork === undefined
        ? []
        : [this.#every(pollMs, async () => await this.#askedWork?.poll())]),
      ...(this.#calledWork === undefined
        ? []
        : [this.#every(findMs, async () => await this.#calledWork?.find())]),
      this.#every(pruneMs, () => this.#prune()),
    );
    this.#started.resolve();
  }

  /** Repeats a task until the engine closes. A failed task runs again after the next pause. */
  async #every(ms: number, task: () => Promise<void>): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      await this.#clock.sleep(ms, signal).catch(() => undefined);
      if (!signal.aborted) await task().catch(() => undefined);
    }
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
    else if (kind === "stream") this.#events.onWritten(id);
    else if (kind === "approval") this.#waitingCalls.onNews(id);
    else if (kind === "schedule") void this.#schedules.arm().catch(() => undefined);
    else {
      const isEnd = kind === "ended";
      for (const part of [this.#dispatches, this.#runs]) {
        if (isEnd) part.onEnded(id);
        else part.onCancel(id);
      }
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
      () => pruneEvents(this.#base, before),
      () => pruneStreams(this.#base, this.#base.limits),
      () => pruneBytes(this.#base, this.#base.limits),
      () => pruneWaitingCalls(this.#base, before),
    ];
    for (const prune of batches) while (this.#ownership.isKeeper && (await prune()));
    await pruneDeliveries(this.#base, before);
    await this.#database.run("DELETE FROM $s.outcomes WHERE coalesce(done_at, claimed_until) < $1", [before]);
  }

  async #mayForget({ agent, instance_id, session }: SessionKey, touchedMs: number): Promise<boolean> {
    const owned = { agent, instance_id };
    await this.#calledWork?.tryHold(owned);
    if (this.#ownership.leaseOf(owned).signal.aborted) return false;
    if (this.#base.queue.waiting({ line: lineOf({ ...owned, session }) }) > 0) return false;
    if (this.#events.isRead(agentStream(agent, instance_id))) return false;
    return !(await hasOpenWork(this.#database, owned, touchedMs));
  }

  /** Clears the queue and releases the shards: the next owners load the waiting work from the rows. */
  async #leave(): Promise<void> {
    if (this.#draining.signal.aborted) return;
    this.#base.queue.close({ clear: true });
    this.#draining.abort(stopped());
    await this.#ownership.drain();
  }

  async #drain(timeoutMs: number): Promise<void> {
    const { queue } = this.#base;
    this.#state = "closed";
    this.#started.resolve();
    // Not awaited: if the database is unavailable, the end of the connection releases the shards.
    void this.#leave();
    if (await endsWithin(timeoutMs, queue.slotsFree(), this.#clock)) {
      await endsWithin(Math.min(timeoutMs, approvalPatienceMs), queue.idle(), this.#clock);
    }
    this.#stopping.abort(stopped());
    await endsWithin(abortPatienceMs, queue.idle(), this.#clock);
    this.#over.abort();
    this.#schedules.stop();
    await Promise.all(this.#background);
    await this.#calledWork?.stop();
    await this.#deliveries.close();
    await this.#events.close();
    await this.#ownership.stop();
    this.#news.publish(["shards"]);
    await this.#news.stop();
    this.#dispatches.close(closing());
    this.#runs.close(closing());
    await this.#database.close();
  }
}
