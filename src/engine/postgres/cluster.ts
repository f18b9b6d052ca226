import { randomBytes } from "node:crypto";
import type { ClusterNode, EngineCluster, Owned } from "../cluster.ts";
import type { PostgresBase } from "./postgres-base.ts";
import { shardOf } from "./shards.ts";

/** How old an answer about owners can be: a node that was asked wrongly refuses the request. */
const ownersMs = 1_000;

type NodeRow = Pick<ClusterNode, "node" | "host"> & { readonly address: string | null };

/** The nodes that share a database, and which of them owns what. */
export class PostgresCluster implements EngineCluster {
  readonly node: string;
  readonly #base: PostgresBase;
  #owners: ReadonlyMap<number, ClusterNode> = new Map();
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  #secret: Promise<string> | undefined;

  constructor(base: PostgresBase) {
    this.#base = base;
    this.node = base.ownership.node;
  }

  now(): number {
    return this.#base.clock.now();
  }

  owns(owned: Owned): boolean {
    const { draining, ownership } = this.#base;
    return !draining.aborted && ownership.isInTouch && !this.#base.leaseOf(owned).signal.aborted;
  }

  fence(owned: Owned): number {
    return this.owns(owned) ? this.#base.leaseOf(owned).fence : 0;
  }

  async owner(
    owned: Owned,
    { fresh = false }: { readonly fresh?: boolean } = {},
  ): Promise<ClusterNode | undefined> {
    const { host, address, takes } = this.#base.ownership;
    const thisNode = { node: this.node, host, address };
    if (this.owns(owned)) return thisNode;
    const isOld = performance.now() - this.#readAt > ownersMs;
    if (fresh || isOld) await this.#readOwners();
    // A node may have taken the shard since the last read.
    if (takes === "called" && !fresh && !isOld && !this.#owners.has(shardOf(owned))) await this.#readOwners();
    const owner = this.#owners.get(shardOf(owned));
    const isOther = owner !== undefined && owner.node !== this.node;
    // A function takes what no server owns: other functions cannot be asked, and end soon.
    if (takes === "asked") return isOther && owner.address !== undefined ? owner : thisNode;
    // The executor calls nodes only for accepted work. Work that a caller waits for is done by the node that got the request.
    const mayTake = takes === "called" && this.#base.handlers() !== undefined && !this.#base.draining.aborted;
    return isOther ? owner : mayTake ? thisNode : undefined;
  }

  async nodes(): Promise<readonly ClusterNode[]> {
    const rows = await this.#base.database.rows<NodeRow>(
      "SELECT node, host, address FROM $s.nodes ORDER BY started_at, node",
    );
    return rows.map(toNode);
  }

  async announce(address: string): Promise<void> {
    await this.#base.ownership.announce(address);
  }

  async declareSchedules(names: readonly string[]): Promise<ReadonlySet<string> | undefined> {
    const { database, ownership } = this.#base;
    ownership.schedules = names;
    await database.run("UPDATE $s.nodes SET schedules = $2 WHERE node = $1", [this.node, names]);
    const otherNodes = await database.rows<{ readonly schedules: readonly string[] | null }>(
      "SELECT schedules FROM $s.nodes WHERE node <> $1",
      [this.node],
    );
    const declared = new Set<string>();
    for (const { schedules } of otherNodes) {
      if (schedules === null) return undefined;
      for (const name of schedules) declared.add(name);
    }
    return declared;
  }

  async secret(): Promise<string> {
    this.#secret ??= this.#readSecret().catch((error: unknown) => {
      this.#secret = undefined;
      throw error;
    });
    return await this.#secret;
  }

  async #readOwners(): Promise<void> {
    this.#reading ??= this.#queryOwners().finally(() => {
      this.#reading = undefined;
    });
    await this.#reading;
  }

  async #queryOwners(): Promise<void> {
    const rows = await this.#base.database.rows<NodeRow & { readonly shard: number }>(
      "SELECT shard, node, host, address FROM $s.shards JOIN $s.nodes USING (node)",
    );
    this.#owners = new Map(rows.map((row) => [row.shard, toNode(row)]));
    this.#readAt = performance.now();
  }

  /** The first node creates the secret. It is only in the database and in the memory of nodes. */
  async #readSecret(): Promise<string> {
    const { database } = this.#base;
    const created = randomBytes(32).toString("base64url");
    await database.run("INSERT INTO $s.secrets (name, value) VALUES ('nodes', $1) ON CONFLICT DO NOTHING", [
      created,
    ]);
    const row = await database.row<{ value: string }>("SELECT value FROM $s.secrets WHERE name = 'nodes'");
    return row?.value ?? created;
  }
}

function toNode({ node, host, address }: NodeRow): ClusterNode {
  return { node, host, address: address ?? undefined };
}
