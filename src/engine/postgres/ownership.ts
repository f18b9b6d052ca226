import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { Batcher } from "../../postgres/batcher.ts";
import { type OwnConnection, openConnection } from "../../postgres/pool.ts";
import type { Owned } from "../cluster.ts";
import { type Lease, leaseLost } from "../shared/engine-base.ts";
import { functionPrefix, removeDeadNodes, silenceMs, writeNode } from "./node-rows.ts";
import type { OwnershipOptions } from "./ownership-options.ts";
import { freeShards, shardCount, shardOf, tryLockShards, unlockShards } from "./shards.ts";

/** How often a node says that it lives, and looks for others. */
const beatMs = 200;
/** How often a node that leaves looks for shards that have come to rest. */
const drainBeatMs = 50;
/** A node that could not say so for this long fires `lease_lost` itself; well before another may take over. */
const ownSilenceMs = 2_000;
/** For so long a node tries to take a shard that it was asked for and another node holds. */
const requestMs = 5_000;
/** A shard that was asked for is given up once it has rested for so long. */
const restMs = { asked: 1_000, called: 10_000 };

interface Shard {
  readonly fence: number;
  readonly controller: AbortController;
}

interface Beat {
  /** Nodes among which the shards are divided; this one is none of them once it leaves. */
  readonly nodes: number;
}

const unheld = AbortSignal.abort(leaseLost());

/**
 * Which shards this node owns. A node holds a shard by an advisory lock of Postgres on one direct connection, which ends with
 * the node's process, so that a dead node is noticed at once. A frozen one keeps its connection: others end that after three
 * seconds without a heartbeat. At each change of hands the shard's fence rises.
 */
export class Ownership {
  readonly node: string;
  readonly host: string = hostname();
  others = 0;
  /** The schedules that this node's files declare, once they are known. */
  schedules: readonly string[] | undefined;
  readonly #options: OwnershipOptions;
  readonly #shards = new Map<number, Shard>();
  readonly #stopped = new AbortController();
  /** Shards that this node is to take, with the time by `performance.now` at which it gives that up. */
  readonly #requested = new Map<number, number>();
  /** When each shard was asked for last, by `performance.now`. */
  readonly #askedAt = new Map<number, number>();
  /** Shards that are being handed over: they are asked for anew. */
  #going: ReadonlySet<number> = new Set();
  /** Callers that keep a shard: it is not given up meanwhile. */
  readonly #holders = new Set<{ readonly shard: number }>();
  /** Turns that do not wait for the next heartbeat; one at a time. */
  readonly #turns: Batcher<null, void>;
  #connection: OwnConnection | undefined;
  /** When the last heartbeat that reached the database was sent, by `performance.now`. */
  #beatAt = 0;
  #loop: Promise<void> | undefined;
  /** The work of shards that were gained last; the heartbeat does not wait for it. */
  #taking: Promise<void> | undefined;
  #watch: NodeJS.Timeout | undefined;
  #address: string | undefined;
  #isDraining = false;

  constructor(options: OwnershipOptions) {
    this.#options = options;
    this.node = `${options.takes === "asked" ? functionPrefix : ""}${randomUUID()}`;
    this.#turns = new Batcher<null, void>(async (all) => {
      await this.#turn().catch((error: unknown) => {
        this.#disconnect();
        throw error;
      });
      return all.map(() => undefined);
    });
  }

  /** The lease of an instance or a run; one that has ended where another node owns it. */
  leaseOf(owned: Owned): Lease {
    return this.leaseOfShard(shardOf(owned));
  }

  leaseOfShard(shard: number): Lease {
    const held = this.#shards.get(shard);
    return held === undefined
      ? { fence: 0, signal: unheld }
      : { fence: held.fence, signal: held.controller.signal };
  }

  /** The shards that this node owns now. */
  get shards(): readonly number[] {
    return [...this.#shards.keys()];
  }

  /** Whether this node owns the shard that one node alone needs: for chores of the whole database. */
  get isKeeper(): boolean {
    return this.#shards.has(0);
  }

  /** Whether the last heartbeat is young enough for this node to do anything: a frozen process finds out here. */
  get isInTouch(): boolean {
    return performance.now() - this.#beatAt <= ownSilenceMs;
  }

  /** Whether this node takes what it is asked for or called for, instead of a share. */
  get takes(): OwnershipOptions["takes"] {
    return this.#options.takes;
  }

  /** Where other nodes reach this one. */
  get address(): string | undefined {
    return this.#address;
  }

  async announce(address: string): Promise<void> {
    this.#address = address;
    // Each heartbeat says it again: a database that is away for the moment learns of it then.
    await this.#options.database
      .run("UPDATE $s.nodes SET address = $2 WHERE node = $1", [this.node, address])
      .catch(() => undefined);
  }

  /** Joins the cluster, and takes this node's share of the shards that are free. */
  async start(): Promise<void> {
    if (this.#options.takes !== "asked") {
      await this.#turns.add(null);
      await this.#taking;
    }
    this.#watch = setInterval(() => this.#checkSilence(), beatMs / 2);
    this.#loop = this.#run();
  }

  /** Whether this node is taking shards that it was asked for. */
  get isTaking(): boolean {
    return this.#requested.size > 0 || this.#taking !== undefined;
  }

  /** Asks a node without a share to take shards, soon; those that another node holds once that gives them up. */
  want(shards: readonly number[]): void {
    if (this.#options.takes === "share" || this.#stopped.signal.aborted) return;
    const now = performance.now();
    for (const shard of shards) {
      this.#askedAt.set(shard, now);
      if (!this.#shards.has(shard) || this.#going.has(shard)) this.#requested.set(shard, now + requestMs);
    }
    if (this.#requested.size > 0) this.#turns.add(null).catch(() => undefined);
  }

  forgo(shard: number): void {
    this.#requested.delete(shard);
  }

  /** Asks for a shard, and waits until this node holds it, for as long as it tries. The function returned lets it go. */
  async hold(shard: number, signal: AbortSignal | undefined): Promise<() => void> {
    if (this.#options.takes === "share") return () => undefined;
    const holder = { shard };
    this.#holders.add(holder);
    this.want([shard]);
    while (this.#requested.has(shard) && signal?.aborted !== true) {
      await this.#turns.add(null).catch(() => undefined);
      if (this.#requested.has(shard))
        await this.#options.clock.sleep(beatMs / 2, signal).catch(() => undefined);
    }
    await this.#taking;
    return () => void this.#holders.delete(holder);
  }

  /** Does not wait for the next heartbeat: a node that is silent loses its shards. */
  readonly turnNow = async (): Promise<void> => await this.#turns.add(null);

  /**
   * From now on this node takes no shard, and hands over those of which nothing is at work, the others as they come to rest.
   * Resolves once the other nodes can see that it leaves.
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

  /** Looks for shards now: another node says that some are free. */
  hurry(): void {
    if (this.#loop !== undefined && this.#options.takes === "share")
      this.#turns.add(null).catch(() => undefined);
  }

  /** Hands all shards over and leaves the cluster. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#loop;
    await this.#turns.idle();
    clearInterval(this.#watch);
    const connection = this.#connection;
    const { inSchema } = this.#options.database;
    await connection
      ?.query(inSchema("DELETE FROM $s.nodes WHERE node = $1"), [this.node])
      .catch(() => undefined);
    // The locks go with their connection.
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
      if (!rests) await this.#turns.add(null).catch(() => undefined);
    }
  }

  /** One heartbeat, and what follows from what it has found. */
  async #turn(): Promise<void> {
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

  async #takeRequested(connection: OwnConnection, leastRestMs: number): Promise<void> {
    const now = performance.now();
    const resting = this.#idle.filter((shard) => (this.#askedAt.get(shard) ?? 0) + leastRestMs < now);
    if (this.#taking === undefined) await this.#handOver(connection, resting);
    await this.#lock(
      connection,
      [...this.#requested.keys()].filter((shard) => !this.#shards.has(shard)),
    );
    for (const [shard, until] of this.#requested)
      if (until < now || this.#shards.has(shard)) this.#requested.delete(shard);
  }

  get #idle(): number[] {
    const held = new Set([...this.#holders].map(({ shard }) => shard));
    return this.shards.filter((shard) => !held.has(shard) && this.#options.isIdle(shard));
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
    // A node that hangs, or that the network has cut off, loses its locks also where no other node may end its connection.
    await connection.query(`SET idle_session_timeout = ${silenceMs}`).catch(() => undefined);
    await this.#writeBeat(connection, { isNew: true });
    return connection;
  }

  async #beat(connection: OwnConnection): Promise<Beat> {
    const { clock } = this.#options;
    const sentAt = performance.now();
    const beat = await this.#writeBeat(connection);
    // A beat that took longer than the node may be silent proves nothing: others may have taken over meanwhile.
    if (this.#beatAt > 0 && this.#shards.size > 0) this.#checkSilence();
    if (this.#connection !== connection) throw leaseLost();
    this.#beatAt = sentAt;
    clock.set(beat.now, sentAt, performance.now());
    return { nodes: beat.others + (this.#isDraining ? 0 : 1) };
  }

  async #writeBeat(connection: OwnConnection, { isNew = false } = {}): ReturnType<typeof writeNode> {
    const { database, version, takes, project, newsAgeMs, problem } = this.#options;
    const { node, host, schedules } = this;
    const own = { node, host, schedules, address: this.#address, isDraining: this.#isDraining };
    const state = { ...own, version, takes, project, newsAgeMs: newsAgeMs(), problem: problem(), isNew };
    return await writeNode(connection, database, state);
  }

  /** Locks of one schema of one database: two clusters in a database do not meet. */
  get lockSpace(): string {
    return `kit shards of ${this.#options.database.schema}`;
  }

  /** The shards that this node was asked for. */
  get known(): number[] {
    return [...this.#askedAt.keys()];
  }

  async #acquire(connection: OwnConnection, count: number): Promise<void> {
    const free = await freeShards(connection, this.lockSpace);
    const inOrder = free.filter((shard) => !this.#shards.has(shard));
    // Several nodes look at the same time: each begins elsewhere.
    const start = Math.floor(Math.random() * inOrder.length);
    await this.#lock(connection, [...inOrder.slice(start), ...inOrder.slice(0, start)].slice(0, count));
  }

  /** Takes those of the shards that no node holds. */
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
    // The next sweep takes up what could not be taken up now.
    const taking: Promise<void> = Promise.allSettled([this.#taking, this.#options.onGained(gained)]).then(
      () => {
        if (this.#taking === taking) this.#taking = undefined;
      },
    );
    this.#taking = taking;
  }

  /** Hands shards over of which nothing is at work; the others follow when they rest. */
  async #handOver(connection: OwnConnection, idle: readonly number[]): Promise<void> {
    if (idle.length === 0) return;
    this.#going = new Set(idle);
    try {
      await this.#options.beforeRelease(idle);
      this.#lose(idle);
    } finally {
      this.#going = new Set();
    }
    // Other nodes may leave them alone for long: a reader of the rows finds no owner then.
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

  /** A process that was frozen, or cannot reach the database, must stop before another node may have begun. */
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
    const lost = shards.map((shard) => this.#shards.get(shard));
    for (const shard of shards) this.#shards.delete(shard);
    const reason = leaseLost();
    for (const shard of lost) shard?.controller.abort(reason);
    this.#options.onLost(new Set(shards));
  }
}
