import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { Batcher } from "../../postgres/batcher.ts";
import { type OwnConnection, openConnection } from "../../postgres/pool.ts";
import type { Owned } from "../cluster.ts";
import { type Lease, leaseLost } from "../shared/engine-base.ts";
import { functionPrefix, removeDeadNodes, silenceMs, writeNode } from "./node-rows.ts";
import type { OwnershipOptions } from "./ownership-options.ts";
import { freeShards, shardCount, shardOf, tryLockShards, unlockShards } from "./shards.ts";

/** The pause between two heartbeats. */
const beatMs = 200;
/** The pause between two heartbeats of a draining node, which releases shards that have come to rest. */
const drainBeatMs = 50;
/** A node whose heartbeats fail for this time fires `lease_lost` itself, well before another node can take over. */
const ownSilenceMs = 2_000;
/** How long a node tries to take a requested shard that another node holds. */
const requestMs = 5_000;
/** A requested shard is released once it has rested for this time. */
const restMs = { asked: 1_000, called: 10_000 };

interface Shard {
  readonly fence: number;
  readonly controller: AbortController;
}

interface Beat {
  /** The number of nodes that share the shards; this node is not counted once it drains. */
  readonly nodes: number;
}

const unheld = AbortSignal.abort(leaseLost());

/**
 * The shards that this node owns. A node holds a shard with an advisory lock of Postgres on one direct connection, which
 * ends with the node's process, so a dead node loses its shards at once. A frozen node keeps its connection: the others end
 * it after three seconds without a heartbeat. The fence of a shard rises with each new owner.
 */
export class Ownership {
  readonly node: string;
  readonly host: string = hostname();
  others = 0;
  /** The schedules that this node's files declare; `undefined` until they are known. */
  schedules: readonly string[] | undefined;
  readonly #options: OwnershipOptions;
  readonly #shards = new Map<number, Shard>();
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
  /** When the last heartbeat that reached the database was sent, by `performance.now`. */
  #beatAt = 0;
  #loop: Promise<void> | undefined;
  /** The takeover of the work of gained shards; heartbeats do not wait for it. */
  #taking: Promise<void> | undefined;
  #watch: NodeJS.Timeout | undefined;
  #address: string | undefined;
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

  /** The lease of an instance or a run; its signal has fired if another node owns it. */
  leaseOf(owned: Owned): Lease {
    return this.leaseOfShard(shardOf(owned));
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
    return performance.now() - this.#beatAt <= ownSilenceMs;
  }

  /** How this node takes shards. */
  get takes(): OwnershipOptions["takes"] {
    return this.#options.takes;
  }

  /** The URL under which other nodes reach this node. */
  get address(): string | undefined {
    return this.#address;
  }

  async announce(address: string): Promise<void> {
    this.#address = address;
    // Each heartbeat writes the address again, so a failure here has no consequence.
    await this.#options.database
      .run("UPDATE $s.nodes SET address = $2 WHERE node = $1", [this.node, address])
      .catch(() => undefined);
  }

  /** Joins the cluster, and takes this node's share of the free shards. */
  async start(): Promise<void> {
    if (this.#options.takes !== "asked") {
      await this.#beats.add(null);
      await this.#taking;
    }
    this.#watch = setInterval(() => this.#checkSilence(), beatMs / 2);
    this.#loop = this.#run();
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
      if (!this.#shards.has(shard) || this.#leaving.has(shard)) this.#requested.set(shard, now + requestMs);
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
   * Resolves once the other nodes can see that this node is draining.
   */
  async drain(): Promise<void> {
    this.#isDraining = true;
    this.#requested.clear();
    if (this.#loop === undefined) return;
    await this.#options.database
      .run("UPDATE $s.nodes SET draining = true WHERE node = $1", [this.node])
      .catch(() => undefined);
    this.hurry();
  }

  /** Looks for free shards now, because another node has released some. */
  hurry(): void {
    if (this.#loop !== undefined && this.#options.takes === "share")
      this.#beats.add(null).catch(() => undefined);
  }

  /** Hands all shards over and leaves the cluster. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#loop;
    await this.#beats.idle();
    clearInterval(this.#watch);
    const connection = this.#connection;
    const { inSchema } = this.#options.database;
    await connection
      ?.query(inSchema("DELETE FROM $s.nodes WHERE node = $1"), [this.node])
      .catch(() => undefined);
    // The end of the connection releases the locks.
    this.#connection = undefined;
    connection?.destroy();
    this.#lose([...this.#shards.keys()]);
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#stopped.signal.aborted) {
      await clock.sleep(this.#isDraining ? drainBeatMs : beatMs, this.#stopped.signal).catch(() => undefined);
      if (this.#stopped.signal.aborted) return;
      const rests = this.#options.takes === "asked" && this.#shards.size + this.#requested.size === 0;
      if (!rests) await this.#beats.add(null).catch(() => undefined);
    }
  }

  /** Sends a heartbeat, removes dead nodes, and takes or hands over shards. */
  async #beatAndBalance(): Promise<void> {
    if (this.#stopped.signal.aborted) return;
    const connection = await this.#connect();
    const { nodes } = await this.#beat(connection);
    this.others = nodes - 1;
    await removeDeadNodes(connection, {
      database: this.#options.database,
      node: this.node,
      space: this.lockSpace,
    });
    const { takes } = this.#options;
    const share = this.#isDraining ? 0 : Math.ceil(shardCount / Math.max(1, nodes));
    if (takes !== "asked" && this.#shards.size > share)
      await this.#handOver(connection, this.#idle.slice(0, this.#shards.size - share));
    if (takes !== "share") await this.#takeRequested(connection, restMs[takes]);
    else if (this.#shards.size < share) await this.#acquire(connection, share - this.#shards.size);
  }

  async #takeRequested(connection: OwnConnection, minRestMs: number): Promise<void> {
    const now = performance.now();
    const resting = this.#idle.filter((shard) => (this.#requestedAt.get(shard) ?? 0) + minRestMs < now);
    if (this.#taking === undefined) await this.#handOver(connection, resting);
    await this.#lock(
      connection,
      [...this.#requested.keys()].filter((shard) => !this.#shards.has(shard)),
    );
    for (const [shard, until] of this.#requested)
      if (until < now || this.#shards.has(shard)) this.#requested.delete(shard);
  }

  get #idle(): number[] {
    const heldShards = new Set([...this.#holders].map(({ shard }) => shard));
    return this.shards.filter((shard) => !heldShards.has(shard) && this.#options.isIdle(shard));
  }

  async #connect(): Promise<OwnConnection> {
    if (this.#connection !== undefined) return this.#connection;
    const { database } = this.#options;
    const connection = await openConnection(database.directUrl);
    if (this.#stopped.signal.aborted) connection.destroy();
    this.#connection = connection;
    void connection.ended.then(() => {
      if (this.#connection === connection) this.#disconnect();
    });
    // A node that hangs or is cut off loses its locks even if no other node has the right to end its connection.
    await connection.query(`SET idle_session_timeout = ${silenceMs}`).catch(() => undefined);
    await this.#writeBeat(connection, { isNew: true });
    return connection;
  }

  async #beat(connection: OwnConnection): Promise<Beat> {
    const { clock } = this.#options;
    const sentAt = performance.now();
    const beat = await this.#writeBeat(connection);
    // Another node can have taken over during a heartbeat that took longer than the allowed silence.
    if (this.#beatAt > 0 && this.#shards.size > 0) this.#checkSilence();
    if (this.#connection !== connection) throw leaseLost();
    this.#beatAt = sentAt;
    clock.set(beat.now, sentAt, performance.now());
    return { nodes: beat.others + (this.#isDraining ? 0 : 1) };
  }

  async #writeBeat(connection: OwnConnection, { isNew = false } = {}): ReturnType<typeof writeNode> {
    const { database, version, takes, project, newsAgeMs, problem } = this.#options;
    const { node, host, schedules } = this;
    const record = { node, host, schedules, address: this.#address, isDraining: this.#isDraining };
    const state = { ...record, version, takes, project, newsAgeMs: newsAgeMs(), problem: problem(), isNew };
    return await writeNode(connection, database, state);
  }

  /** The name space of the locks: two clusters in different schemas of a database do not share locks. */
  get lockSpace(): string {
    return `kit shards of ${this.#options.database.schema}`;
  }

  /** All shards that this node has ever requested. */
  get everRequested(): number[] {
    return [...this.#requestedAt.keys()];
  }

  async #acquire(connection: OwnConnection, count: number): Promise<void> {
    const free = await freeShards(connection, this.lockSpace);
    const inOrder = free.filter((shard) => !this.#shards.has(shard));
    // Several nodes take shards at the same time: each begins at a random shard.
    const start = Math.floor(Math.random() * inOrder.length);
    await this.#lock(connection, [...inOrder.slice(start), ...inOrder.slice(0, start)].slice(0, count));
  }

  /** Takes the shards that no node holds. */
  async #lock(connection: OwnConnection, shards: readonly number[]): Promise<void> {
    const { database } = this.#options;
    if (shards.length === 0) return;
    const gained = await tryLockShards(connection, this.lockSpace, shards);
    if (gained.length === 0) return;
    const raised = await connection.query(
      database.inSchema(
        "UPDATE $s.shards SET fence = fence + 1, node = $1 WHERE shard = ANY($2) RETURNING shard, fence",
      ),
      [this.node, gained],
    );
    if (this.#connection !== connection) throw leaseLost();
    for (const { shard, fence } of raised.rows) {
      this.#shards.set(Number(shard), { fence: Number(fence), controller: new AbortController() });
    }
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
    // No other node may take the shards for long, so the rows must not name this node as their owner.
    if (this.#options.takes !== "share")
      await connection.query(
        this.#options.database.inSchema(
          "UPDATE $s.shards SET node = NULL WHERE node = $1 AND shard = ANY($2)",
        ),
        [this.node, [...idle]],
      );
    await unlockShards(connection, this.lockSpace, idle);
    this.#options.announceFree();
  }

  /** Stops the work of a process that was frozen or cannot reach the database, before another node can begin it. */
  #checkSilence(): void {
    if (this.#shards.size > 0 && performance.now() - this.#beatAt > ownSilenceMs) this.#disconnect();
  }

  #disconnect(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    connection?.destroy();
    this.#lose([...this.#shards.keys()]);
  }

  #lose(shards: readonly number[]): void {
    if (shards.length === 0) return;
    const lostShards = shards.map((shard) => this.#shards.get(shard));
    for (const shard of shards) this.#shards.delete(shard);
    const reason = leaseLost();
    for (const shard of lostShards) shard?.controller.abort(reason);
    this.#options.onLost(new Set(shards));
  }
}
