import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { Batcher } from "../../postgres/batcher.ts";
import { type OwnConnection, openConnection } from "../../postgres/pool.ts";
import { type Lease, leaseLost } from "../shared/engine-base.ts";
import { checkDirect } from "./check-direct.ts";
import { type Beat, beatMs, removeDeadNodes, silenceMs, writeNode } from "./node-rows.ts";
import type { OwnershipOptions } from "./ownership-options.ts";
import * as times from "./ownership-times.ts";
import { HangWatch } from "./ownership-times.ts";
import { FreeShardSearch } from "./searches.ts";
import {
  freeShards,
  handOverShards,
  leaveCluster,
  relockShards,
  type Taker,
  takeBackCharges,
  takeShards,
} from "./shard-rows.ts";
import { functionPrefix, shardCount } from "./shards.ts";
import { hangMs, startThreadedBeats, type ThreadedBeats } from "./threaded-beats.ts";

interface Shard {
  readonly fence: number;
  readonly controller: AbortController;
}

const unheld = AbortSignal.abort(leaseLost());

/**
 * The shards that this node owns. The row of a shard names its owner, with a fence that rises with each new one. A node also
 * holds an advisory lock of Postgres on one direct connection, which ends with the node's process, so a dead node loses its
 * shards soon. A frozen node keeps its connection: the others end it after three seconds without a heartbeat. A node that loses
 * its connection stays the owner, and its work goes on, if it is back within a second; after that it stops its work.
 */
export class Ownership {
  readonly node: string;
  readonly host: string = hostname();
  others = 0;
  /** The schedules that this node's files declare; `undefined` until they are known. */
  schedules: readonly string[] | undefined;
  readonly #options: OwnershipOptions;
  readonly #shards = new Map<number, Shard>();
  /** Shards whose lock was lost with the connection. */
  readonly #unlocked = new Set<number>();
  readonly #stopped = new AbortController();
  /** Shards that this node tries to take, with the time by `performance.now` at which it stops trying. */
  readonly #requested = new Map<number, number>();
  /** When each shard was last requested, by `performance.now`. */
  readonly #requestedAt = new Map<number, number>();
  /** Shards that are being handed over: a request for them counts as new. */
  #leaving: ReadonlySet<number> = new Set();
  /** Callers that keep a shard: it is not released meanwhile. */
  readonly #holders = new Set<{ readonly shard: number }>();
  /** Heartbeats; they run one at a time. */
  readonly #beats: Batcher<null, void>;
  #connection: OwnConnection | undefined;
  /** How often this node has lost its connection, and the database perhaps what the node wrote last. */
  losses = 0;
  /** When the last heartbeat that reached the database was sent, by `performance.now`. */
  #beatAt = 0;
  #loop: Promise<void> | undefined;
  #watch: NodeJS.Timeout | undefined;
  readonly #hang = new HangWatch();
  /** The takeover of the work of gained shards; heartbeats do not wait for it. */
  #taking: Promise<void> | undefined;
  /** When this node may remove others again, by `performance.now`. */
  #trustsAt = 0;
  /** When this node takes charges back next, and when it stops, by `performance.now`. */
  #takesBack = { next: 0, until: 0 };
  readonly #search = new FreeShardSearch();
  /** The URL under which other nodes reach this node. */
  address: string | undefined;
  #threaded: ThreadedBeats | undefined;
  #isDraining = false;

  constructor(options: OwnershipOptions) {
    this.#options = options;
    this.node = `${options.takes === "asked" ? functionPrefix : ""}${randomUUID()}`;
    this.#beats = new Batcher<null, void>(async (all) => {
      await this.#beatAndBalance().catch((error: unknown) => {
        this.#disconnect();
        throw error;
      });
      return all.map(() => undefined);
    });
  }

  leaseOfShard(shard: number): Lease {
    const shardLease = this.#shards.get(shard);
    return shardLease === undefined
      ? { fence: 0, signal: unheld }
      : { fence: shardLease.fence, signal: shardLease.controller.signal };
  }

  /** The shards that this node owns now. */
  get shards(): readonly number[] {
    return [...this.#shards.keys()];
  }

  /** Whether this node owns shard 0: its owner, the keeper, does the chores of the whole database. */
  get isKeeper(): boolean {
    return this.#shards.has(0);
  }

  /** Whether the last heartbeat is recent enough for this node to work; false in a process that was frozen. */
  get isInTouch(): boolean {
    return performance.now() - this.#beatAt <= times.ownSilenceMs;
  }

  /** How this node takes shards. */
  get takes(): OwnershipOptions["takes"] {
    return this.#options.takes;
  }

  async announce(address: string): Promise<void> {
    this.address = address;
    // Each heartbeat writes the address again, so a failure here has no consequence.
    await this.#options.database
      .run("UPDATE $s.nodes SET address = $2 WHERE node = $1", [this.node, address])
      .catch(() => undefined);
  }

  /** Joins the cluster, and takes this node's share of the free shards. */
  async start(): Promise<void> {
    if (this.#options.takes !== "asked") {
      // Functions have no thread: their platform can freeze them, and they end soon.
      this.#threaded = startThreadedBeats(this.#options.database, this.node);
      await this.#beats.add(null);
      await this.#taking;
    }
    this.#loop = this.#run();
    this.#watch = setInterval(() => this.#checkSilence(), times.watchMs).unref();
  }

  /** Whether this node is taking requested shards. */
  get isTaking(): boolean {
    return this.#requested.size > 0 || this.#taking !== undefined;
  }

  /** Requests shards for a node without a share. Shards of another node are taken once that node releases them. */
  want(shards: readonly number[]): void {
    if (this.#options.takes === "share" || this.#stopped.signal.aborted) return;
    const now = performance.now();
    for (const shard of shards) {
      this.#requestedAt.set(shard, now);
      if (!this.#shards.has(shard) || this.#leaving.has(shard))
        this.#requested.set(shard, now + times.requestMs);
    }
    if (this.#requested.size > 0) this.#beats.add(null).catch(() => undefined);
  }

  /** Withdraws the request for a shard. */
  withdraw(shard: number): void {
    this.#requested.delete(shard);
  }

  /** Requests a shard, and waits until this node holds it or stops trying. Returns the function that releases it. */
  async hold(shard: number, signal: AbortSignal | undefined): Promise<() => void> {
    if (this.#options.takes === "share") return () => undefined;
    const holder = { shard };
    this.#holders.add(holder);
    this.want([shard]);
    while (this.#requested.has(shard) && signal?.aborted !== true) {
      await this.#beats.add(null).catch(() => undefined);
      if (this.#requested.has(shard))
        await this.#options.clock.sleep(beatMs / 2, signal).catch(() => undefined);
    }
    await this.#taking;
    return () => void this.#holders.delete(holder);
  }

  /** Makes a heartbeat now; it also removes silent nodes. */
  readonly beatNow = async (): Promise<void> => await this.#beats.add(null);

  /**
   * From now on this node takes no shards, and hands over shards without running work, the others once they rest.
   * Resolves once the other nodes can see that this node is draining: a heartbeat under way still says that it works.
   */
  async drain(): Promise<void> {
    this.#isDraining = true;
    this.#requested.clear();
    if (this.#loop === undefined) return;
    await this.#beats.idle();
    const sql = "UPDATE $s.nodes SET draining = true WHERE node = $1";
    await this.#options.database.run(sql, [this.node]).catch(() => undefined);
    this.hurry();
  }

  /** Looks for free shards now, because another node has released some. */
  hurry(): void {
    this.#search.hurry();
    if (this.#loop !== undefined && this.#options.takes === "share")
      this.#beats.add(null).catch(() => undefined);
  }

  /** Hands all shards over and leaves the cluster. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    clearInterval(this.#watch);
    await this.#loop;
    await this.#beats.idle();
    this.#threaded?.stop();
    const connection = this.#connection;
    if (connection !== undefined) await leaveCluster(this.#taker(connection)).catch(() => undefined);
    // The end of the connection releases the locks.
    this.#connection = undefined;
    connection?.destroy();
    this.#lose([...this.#shards.keys()]);
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#stopped.signal.aborted) {
      const pauseMs = this.#isDraining ? times.drainBeatMs : beatMs;
      await clock.sleep(pauseMs, this.#stopped.signal).catch(() => undefined);
      if (this.#stopped.signal.aborted) return;
      const rests = this.#options.takes === "asked" && this.#shards.size + this.#requested.size === 0;
      if (!rests) await this.#beats.add(null).catch(() => undefined);
    }
  }

  /** Sends a heartbeat, removes dead nodes, and takes or hands over shards. */
  async #beatAndBalance(): Promise<void> {
    if (this.#stopped.signal.aborted) return;
    const connection = await this.#connect();
    const beat = await this.#beat(connection);
    this.others = beat.others;
    const taker = this.#taker(connection);
    if (beat.has_silent && performance.now() > this.#trustsAt) await removeDeadNodes(taker);
    await this.#relock(taker);
    await this.#takeBack(taker);
    const { takes } = this.#options;
    const share = this.#isDraining ? 0 : Math.ceil(shardCount / Math.max(1, this.others + 1));
    if (takes !== "asked" && this.#shards.size > share)
      await this.#handOver(connection, this.#idle.slice(0, this.#shards.size - share));
    if (takes !== "share") await this.#takeRequested(connection, times.restMs[takes]);
    else if (this.#shards.size < share && this.#search.isDue(this.#shards.size, this.others))
      await this.#acquire(connection, share - this.#shards.size);
  }

  async #takeRequested(connection: OwnConnection, minRestMs: number): Promise<void> {
    const now = performance.now();
    const resting = this.#idle.filter((shard) => (this.#requestedAt.get(shard) ?? 0) + minRestMs < now);
    if (this.#taking === undefined) await this.#handOver(connection, resting);
    const asked = [...this.#requested.keys()].filter((shard) => !this.#shards.has(shard));
    if (asked.length > 0) await this.#take(connection, await freeShards(this.#taker(connection), asked));
    for (const [shard, until] of this.#requested)
      if (until < now || this.#shards.has(shard)) this.#requested.delete(shard);
  }

  get #idle(): number[] {
    const heldShards = new Set([...this.#holders].map(({ shard }) => shard));
    return this.shards.filter(
      (shard) => !heldShards.has(shard) && !this.#unlocked.has(shard) && this.#options.isIdle(shard),
    );
  }

  async #connect(): Promise<OwnConnection> {
    if (this.#connection !== undefined) return this.#connection;
    const { database, takes } = this.#options;
    const connection = await openConnection(database.directUrl);
    if (this.#beatAt === 0 && takes !== "asked") await checkDirect(connection, database.directUrl);
    if (this.#stopped.signal.aborted) connection.destroy();
    this.#connection = connection;
    void connection.ended.then(() => {
      if (this.#connection === connection) this.#disconnect();
    });
    // A node that hangs or is cut off loses its locks even if no other node has the right to end its connection.
    const idleMs = this.#threaded === undefined ? silenceMs : hangMs;
    await connection.query(`SET idle_session_timeout = ${idleMs}`).catch(() => undefined);
    // The row names the new connection once the shards are locked again: until then no other node takes them.
    await this.#relock(this.#taker(connection));
    await this.#writeBeat(connection, { isNew: true });
    if (this.#beatAt > 0) {
      const now = performance.now();
      this.#trustsAt = now + times.distrustMs;
      this.#takesBack = { next: now, until: now + times.takeBackMs.for };
    }
    return connection;
  }

  async #beat(connection: OwnConnection): Promise<Beat> {
    const { clock } = this.#options;
    const sentAt = performance.now();
    const beat = await this.#writeBeat(connection);
    if (this.#connection !== connection) throw leaseLost();
    if (this.#beatAt > 0 && sentAt - this.#beatAt > silenceMs) this.#trustsAt = sentAt + times.distrustMs;
    this.#beatAt = sentAt;
    this.#threaded?.noteBeat();
    clock.set(beat.now, sentAt, performance.now());
    return beat;
  }

  async #writeBeat(connection: OwnConnection, { isNew = false } = {}): ReturnType<typeof writeNode> {
    const { database, version, takes, project, newsAgeMs, problem } = this.#options;
    const { node, host, schedules } = this;
    const record = { node, host, schedules, address: this.address, isDraining: this.#isDraining };
    const state = { ...record, version, takes, project, newsAgeMs: newsAgeMs(), problem: problem(), isNew };
    return await writeNode(connection, database, state);
  }

  /** All shards that this node has ever requested. */
  get everRequested(): number[] {
    return [...this.#requestedAt.keys()];
  }

  async #acquire(connection: OwnConnection, count: number): Promise<void> {
    const free = await freeShards(this.#taker(connection));
    const inOrder = free.filter((shard) => !this.#shards.has(shard));
    // Several nodes take shards at the same time: each begins at a random shard.
    const start = Math.floor(Math.random() * inOrder.length);
    await this.#take(connection, [...inOrder.slice(start), ...inOrder.slice(0, start)].slice(0, count));
  }

  #taker(connection: OwnConnection): Taker {
    return { connection, database: this.#options.database, node: this.node };
  }

  async #take(connection: OwnConnection, shards: readonly number[]): Promise<void> {
    const fences = await takeShards(this.#taker(connection), shards);
    const gained = [...fences.keys()];
    if (gained.length === 0) return;
    if (this.#connection !== connection) throw leaseLost();
    for (const [shard, fence] of fences)
      this.#shards.set(shard, { fence, controller: new AbortController() });
    // If the takeover of the work fails, the next sweep repeats it.
    const taking: Promise<void> = Promise.allSettled([this.#taking, this.#options.onGained(gained)]).then(
      () => {
        if (this.#taking === taking) this.#taking = undefined;
      },
    );
    this.#taking = taking;
  }

  /** Hands idle shards over to other nodes. */
  async #handOver(connection: OwnConnection, idle: readonly number[]): Promise<void> {
    if (idle.length === 0) return;
    this.#leaving = new Set(idle);
    try {
      await this.#options.beforeRelease(idle);
      this.#lose(idle);
    } finally {
      this.#leaving = new Set();
    }
    await handOverShards(this.#taker(connection), idle);
    this.#options.announceFree();
  }

  /** Locks the shards of the last connection again, and loses those that another node has taken. */
  async #relock(taker: Taker): Promise<void> {
    if (this.#unlocked.size === 0) return;
    const shards = [...this.#unlocked];
    const { kept, locked } = await relockShards(taker, shards);
    if (this.#connection !== taker.connection) throw leaseLost();
    for (const shard of locked) this.#unlocked.delete(shard);
    this.#lose(shards.filter((shard) => kept.get(shard) !== this.#shards.get(shard)?.fence));
  }

  async #takeBack(taker: Taker): Promise<void> {
    const now = performance.now();
    const { next, until } = this.#takesBack;
    if (now < next || now > until) return;
    this.#takesBack = { next: now + times.takeBackMs.every, until };
    await takeBackCharges(taker);
  }

  /** Stops the work of a node that is cut off, before another node can begin it. */
  #checkSilence(): void {
    this.#threaded?.touch();
    if (this.#shards.size === 0) return;
    const beatAge = performance.now() - this.#beatAt;
    if (this.#hang.notice(beatAge)) this.#disconnect();
    const silentMs = Math.min(beatAge, this.#threaded?.age() ?? Infinity);
    if (silentMs <= (this.#connection === undefined ? times.ownGoneMs : times.ownSilenceMs)) return;
    this.#disconnect();
    this.#lose([...this.#shards.keys()]);
  }

  #disconnect(): void {
    const connection = this.#connection;
    if (connection !== undefined) this.losses += 1;
    this.#connection = undefined;
    connection?.destroy();
    for (const shard of this.#shards.keys()) this.#unlocked.add(shard);
  }

  #lose(shards: readonly number[]): void {
    if (shards.length === 0) return;
    const lostShards = shards.map((shard) => this.#shards.get(shard));
    for (const shard of shards) {
      this.#shards.delete(shard);
      this.#unlocked.delete(shard);
    }
    const reason = leaseLost();
    for (const shard of lostShards) shard?.controller.abort(reason);
    this.#options.onLost(new Set(shards));
  }
}
