import { endsWithin, raceSignal } from "../../base/abort.ts";
import { version } from "../../base/own-package.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { agentStream, type Engine, type EngineHandlers } from "../contract.ts";
import { Deliveries } from "../shared/deliveries.ts";
import { lineOf } from "../shared/dispatches/dispatch-store.ts";
import { closing, defaultLimits, leaseLost, stopped } from "../shared/engine-base.ts";
import { Outcomes } from "../shared/outcomes.ts";
import { JobQueue } from "../shared/queue/job-queue.ts";
import { Schedules } from "../shared/schedules.ts";
import { parseStored } from "../shared/stored-rows.ts";
import { AskedWork, type BriefEngine, pollMs } from "./asked-work.ts";
import { CalledWork, type Executor, findMs } from "./called-work.ts";
import { PostgresCluster } from "./cluster.ts";
import { clusterState, engineLoad } from "./cluster-state.ts";
import { hasOpenWork } from "./dispatch-rows.ts";
import { Dispatches } from "./dispatches.ts";
import { DatabaseClock, type EngineDatabase } from "./engine-database.ts";
import { PostgresEventLog } from "./event-log.ts";
import { pruneBytes, pruneEvents, pruneStreams } from "./event-rows.ts";
import { type News, NewsWire } from "./news.ts";
import { Ownership } from "./ownership.ts";
import {
  alreadyStarted,
  open,
  type PostgresBase,
  type PostgresEngineOptions,
  toText,
} from "./postgres-base.ts";
import { Runs } from "./runs.ts";
import { shardOf, shardOfJob } from "./shards.ts";
import {
  createDeliveryRows,
  createOutcomeRows,
  createScheduleRows,
  pruneDeliveries,
} from "./small-stores.ts";
import { WaitingCallRows } from "./waiting-calls.ts";

/** How often a node looks in the rows for what no other node has told it. */
const sweepMs = 250;
/** How often it looks for attempts that were claimed while their shard changed hands. */
const recoverMs = 5_000;
const pruneMs = 60_000;
/** How long a drain waits for a handler that ignores its aborted signal. */
const abortPatienceMs = 2_000;
/** How long a drain waits for work that waits for an approval, which may take days. */
const approvalPatienceMs = 5_000;

/** Opens the engine of a function. Throws as `createPostgresEngine` does. */
export async function createBriefEngine(options: PostgresEngineOptions): Promise<BriefEngine> {
  return new PostgresEngine(await open(options), options, "asked").toBriefEngine();
}

/** Opens an engine whose nodes an executor of others calls for their work. Throws as `createPostgresEngine` does. */
export async function createCalledEngine(
  options: PostgresEngineOptions,
  executor: Executor,
): Promise<Engine> {
  return new PostgresEngine(await open(options), options, executor).toEngine();
}

/**
 * The engine that several machines share: accepted work lies in Postgres, and each instance and each run is owned by one node
 * at a time. Any node accepts, lists and answers; the owner does the work.
 *
 * Throws `invalid_request` for an address that is none of Postgres, and `unavailable` where the database, or the package `pg`, is
 * not there, or its tables are of a newer kit.
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
  readonly #waitingCalls: WaitingCallRows;
  readonly #cluster: PostgresCluster;
  #asked: AskedWork | undefined;
  #called: CalledWork | undefined;
  readonly #stopping = new AbortController();
  readonly #draining = new AbortController();
  readonly #over = new AbortController();
  readonly #started = Promise.withResolvers<void>();
  readonly #background: Promise<void>[] = [];
  /** Shards that were gained while the database could not say what lies in them. */
  readonly #untaken = new Set<number>();
  #handlers: EngineHandlers | undefined;
  #state: "new" | "started" | "closed" = "new";
  #drained: Promise<void> | undefined;

  constructor(
    database: EngineDatabase,
    options: PostgresEngineOptions,
    way: "share" | "asked" | Executor = "share",
  ) {
    const takes = typeof way === "string" ? way : "called";
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
      problem: () => this.#called?.problem(),
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
      queue: new JobQueue({ clock, slots: limits.running }),
      stopping: this.#stopping.signal,
      draining: this.#draining.signal,
      leavesAtSteps: takes === "asked",
      leaseOf: (owned) => this.#ownership.leaseOf(owned),
      checkLease: (owned, fence) => this.#checkLease(shardOf(owned), fence),
      handlers: () => this.#handlers,
      wake: (keys) => (typeof way === "string" ? this.#ownership.want(keys.map(shardOf)) : way.wake(keys)),
    };
    this.#base = base;
    if (typeof way !== "string") this.#called = new CalledWork(base, way);
    if (takes === "asked")
      this.#asked = new AskedWork(base, {
        startScheduled: () => this.#schedules.fire(),
        prune: () => this.#prune(),
        isLooking: () => this.#dispatches.isLooking || this.#runs.isLooking,
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
        this.#state === "started" && !this.#draining.signal.aborted && this.#asked?.takesAll !== false,
    });
    this.#outcomes = new Outcomes(base, createOutcomeRows(base));
    this.#deliveries = new Deliveries(base, createDeliveryRows(base));
    this.#waitingCalls = new WaitingCallRows(base);
    this.#cluster = new PostgresCluster(base, this.#waitingCalls);
    this.#news.start();
    // A process that only accepts has callers who wait, too.
    this.#background.push(
      this.#every(sweepMs, async () => {
        await this.#dispatches.wakeEnded();
        await this.#runs.wakeEnded();
        await this.#waitingCalls.sweep();
      }),
    );
  }

  toEngine(): Engine {
    const open =
      <Arguments extends unknown[], Result>(call: (...given: Arguments) => Promise<Result>) =>
      async (...given: Arguments): Promise<Result> => {
        this.#checkOpen();
        return await call(...given);
      };
    const base = this.#base;
    const dispatches = this.#dispatches;
    const runs = this.#runs;
    const schedules = this.#schedules;
    return {
      capabilities: { durable: true, distributed: true },
      events: this.#events,
      deliveries: {
        record: (delivery) => this.#deliveries.record(delivery),
        list: open((filter) => this.#deliveries.list(filter)),
      },
      cluster: this.#cluster,
      warning: () => this.#called?.problem(),
      load: open(() => engineLoad(base, this.#dispatches.attached())),
      state: open(async () => ({ ...(await clusterState(base)), engine: this.#called?.name ?? "postgres" })),
      start: (handlers) => this.#start(handlers),
      leave: open(() => this.#leave()),
      drain: ({ timeoutMs = 30_000 } = {}) => {
        this.#drained ??= this.#drain(timeoutMs);
        return this.#drained;
      },
      admit: open((request) => dispatches.admit(request)),
      inLine: async (place, work, how) => {
        this.#checkOpen();
        // Work of callers goes behind the inputs that were accepted before, so it waits until those are in line.
        if (this.#state === "new") await raceSignal(this.#started.promise, how?.signal);
        this.#checkOpen();
        return await dispatches.inLine(place, work, how);
      },
      once: open((key, work) => this.#outcomes.once(key, work)),
      getDispatch: open((id) => dispatches.getDispatch(id)),
      listDispatches: open((filter) => dispatches.listDispatches(filter)),
      awaitDispatch: open((id, how) => dispatches.awaitDispatch(id, how)),
      cancelDispatch: open((id) => dispatches.cancelDispatch(id)),
      listDeadLetters: open((filter) => dispatches.listDeadLetters(filter)),
      redrive: open((id) => dispatches.redrive(id)),
      mayForget: open((key, touchedMs) => this.#mayForget(key, touchedMs)),
      startRun: open((request) => runs.startRun(request)),
      getRun: open((id) => runs.getRun(id)),
      readJournal: open((id, page) => runs.readJournal(id, page)),
      listRuns: open((filter) => runs.listRuns(filter)),
      awaitRun: open((id, how) => runs.awaitRun(id, how)),
      cancelRun: open((id) => runs.cancelRun(id)),
      signal: open((id, signal) => runs.signal(id, signal)),
      putSchedule: open((schedule) => schedules.putSchedule(schedule)),
      deleteSchedule: open((name) => schedules.deleteSchedule(name)),
      listSchedules: open(() => schedules.listSchedules()),
    };
  }

  toBriefEngine(): BriefEngine {
    return {
      ...this.toEngine(),
      takeDue: async () => {
        this.#checkOpen();
        await this.#asked?.takeDue();
      },
      atRest: async () => await this.#asked?.atRest(),
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
      this.#news.ask(this.#ownership.node);
      await this.#ownership.start();
      await this.#schedules.arm();
      await this.#called?.start();
    } catch (error) {
      this.#state = "new";
      this.#handlers = undefined;
      throw error;
    }
    this.#background.push(
      this.#every(sweepMs, () => this.#sweep()),
      this.#every(recoverMs, () => this.#takeOver(this.#ownership.shards)),
      this.#every(recoverMs, () => this.#schedules.arm()),
      ...(this.#asked === undefined ? [] : [this.#every(pollMs, async () => await this.#asked?.poll())]),
      ...(this.#called === undefined ? [] : [this.#every(findMs, async () => await this.#called?.find())]),
      this.#every(pruneMs, () => this.#prune()),
    );
    this.#started.resolve();
  }

  /** Again and again. What fails is tried again at its next time: a database that is away is not a reason to stop. */
  async #every(ms: number, task: () => Promise<void>): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      await this.#clock.sleep(ms, signal).catch(() => undefined);
      if (!signal.aborted) await task().catch(() => undefined);
    }
  }

  async #sweep(): Promise<void> {
    await this.#takeOver([...this.#untaken]);
    await this.#dispatches.sweep();
    await this.#runs.sweep();
  }

  /** Requeues what other nodes have left at work in these shards, and enqueues what waits there. */
  async #takeOver(shards: readonly number[]): Promise<void> {
    if (shards.length === 0) return;
    for (const shard of shards) this.#untaken.add(shard);
    await this.#dispatches.takeOver(shards);
    await this.#runs.takeOver(shards);
    for (const shard of shards) this.#untaken.delete(shard);
  }

  #lose(shards: ReadonlySet<number>): void {
    for (const shard of shards) this.#untaken.delete(shard);
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

  /** One node does what the whole database needs. */
  async #prune(): Promise<void> {
    if (!this.#ownership.isKeeper) return;
    const before = this.#clock.now() - this.#base.limits.retentionMs;
    const batches = [
      () => this.#dispatches.prune(before),
      () => this.#runs.prune(before),
      () => pruneEvents(this.#base, before),
      () => pruneStreams(this.#base, this.#base.limits),
      () => pruneBytes(this.#base, this.#base.limits),
    ];
    for (const prune of batches) while (this.#ownership.isKeeper && (await prune()));
    await this.#waitingCalls.prune(before);
    await pruneDeliveries(this.#base, before);
    await this.#database.run("DELETE FROM $s.outcomes WHERE coalesce(done_at, claimed_until) < $1", [before]);
  }

  async #mayForget({ agent, instance_id, session }: SessionKey, touchedMs: number): Promise<boolean> {
    const owned = { agent, instance_id };
    await this.#called?.tryHold(owned);
    if (this.#ownership.leaseOf(owned).signal.aborted) return false;
    if (this.#base.queue.waiting({ line: lineOf({ ...owned, session }) }) > 0) return false;
    if (this.#events.isRead(agentStream(agent, instance_id))) return false;
    return !(await hasOpenWork(this.#database, owned, touchedMs));
  }

  /** The rows hold all waiting work of the queue: the next owner takes it with the shard. */
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
    // A database that is away is told later, by the end of the connection.
    void this.#leave();
    if (await endsWithin(timeoutMs, queue.slotsFree(), this.#clock)) {
      await endsWithin(Math.min(timeoutMs, approvalPatienceMs), queue.idle(), this.#clock);
    }
    this.#stopping.abort(stopped());
    await endsWithin(abortPatienceMs, queue.idle(), this.#clock);
    this.#over.abort();
    this.#schedules.stop();
    await Promise.all(this.#background);
    await this.#called?.stop();
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
