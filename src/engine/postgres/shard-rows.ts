import type { OwnConnection } from "../../postgres/pool.ts";
import { databaseNow, type EngineDatabase } from "./engine-database.ts";
import { functionPrefix, lockedShards, lockSpaceOf } from "./shards.ts";

/** A node that takes shards over its connection. */
export interface Taker {
  readonly connection: OwnConnection;
  readonly database: EngineDatabase;
  readonly node: string;
}

/**
 * The shards that no node holds, of all shards or of some. A node that has lost its connection still holds its shards until
 * another one removes its row.
 */
export async function freeShards(
  { connection, database, node }: Taker,
  among?: readonly number[],
): Promise<number[]> {
  const { rows } = await connection.query(
    database.inSchema(
      `SELECT shard FROM $s.shards AS s WHERE shard = ANY(coalesce($3, ARRAY[shard])) AND shard NOT IN (${lockedShards("$1")})
         AND NOT EXISTS (SELECT 1 FROM $s.nodes AS n WHERE n.node = s.node AND n.node <> $2
           AND NOT EXISTS (SELECT 1 FROM pg_stat_get_activity(n.backend)))
       ORDER BY shard`,
    ),
    [lockSpaceOf(database), node, among],
  );
  return rows.map(({ shard }) => Number(shard));
}

/**
 * A fence that no owner of the shard had before. The time is for databases that have lost the last fences: a standby that follows late,
 * or a backup. With `isDurable`, the commit waits for the disk whatever the role's setting is.
 */
const nextFence = `greatest(fence + 1, ${databaseNow})`;
const isDurable = `durable AS MATERIALIZED (SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit')
  WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true))`;

/**
 * Takes the shards that no other connection has locked, with a higher fence. `former` is kept of an owner that has vanished
 * without giving the shard up. Returns the fences by shard, once they are on disk.
 */
export async function takeShards(
  { connection, database, node }: Taker,
  shards: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  const locked = shards.length === 0 ? [] : await tryLockShards(connection, lockSpaceOf(database), shards);
  if (locked.length === 0) return new Map();
  const { rows } = await connection.query(
    database.inSchema(
      `WITH ${isDurable}
       UPDATE $s.shards AS s SET fence = ${nextFence}, node = $1,
         former = CASE WHEN node NOT IN ($1, '${functionPrefix}') AND NOT EXISTS (SELECT 1 FROM $s.nodes AS n
           CROSS JOIN pg_stat_get_activity(n.backend) WHERE n.node = s.node) THEN node END
       FROM durable WHERE shard = ANY($2) RETURNING shard, fence`,
    ),
    [node, locked],
  );
  return new Map(rows.map(({ shard, fence }) => [Number(shard), Number(fence)]));
}

/**
 * Locks shards again whose connection was lost. `kept` are the shards with their fences that no other node has taken
 * meanwhile, `locked` those of them that are locked: the old connection can live on for a moment.
 */
export async function relockShards(
  { connection, database, node }: Taker,
  shards: readonly number[],
): Promise<{ readonly kept: ReadonlyMap<number, number>; readonly locked: readonly number[] }> {
  const tried = await tryLockShards(connection, lockSpaceOf(database), shards);
  const { rows } = await connection.query(
    database.inSchema("SELECT shard, fence FROM $s.shards WHERE node = $1 AND shard = ANY($2)"),
    [node, [...shards]],
  );
  const kept = new Map(rows.map(({ shard, fence }) => [Number(shard), Number(fence)]));
  const lost = tried.filter((shard) => !kept.has(shard));
  if (lost.length > 0) await unlockShards(connection, lockSpaceOf(database), lost);
  return { kept, locked: tried.filter((shard) => kept.has(shard)) };
}

/** Takes back what was counted as the death of a node that lives: it was frozen, or could not reach the database. */
export async function takeBackCharges({ connection, database, node }: Taker): Promise<void> {
  const back = "charged = array_remove(charged, $1)";
  const charges = "cardinality(charged) - cardinality(array_remove(charged, $1))";
  for (const sql of [
    "UPDATE $s.shards SET former = NULL WHERE former = $1",
    `UPDATE $s.dispatches SET ${back}, spent = greatest(0, spent - (${charges}))
     WHERE ended_at IS NULL AND $1 = ANY(charged)`,
    `UPDATE $s.runs SET ${back}, crashes = greatest(0, crashes - (${charges}))
     WHERE status IN ('queued', 'running', 'waiting') AND $1 = ANY(charged)`,
  ])
    await connection.query(database.inSchema(sql), [node]);
}

/** Hands shards over: their next owner knows that this node has not vanished. */
export async function handOverShards(
  { connection, database, node }: Taker,
  shards: readonly number[],
): Promise<void> {
  await connection.query(
    database.inSchema("UPDATE $s.shards SET node = NULL WHERE node = $1 AND shard = ANY($2)"),
    [node, [...shards]],
  );
  await unlockShards(connection, lockSpaceOf(database), shards);
}

/** Hands all shards over and removes the row of the node. The rows of a function's shards still tell that one had them last. */
export async function leaveCluster({ connection, database, node }: Taker): Promise<void> {
  await connection.query(
    database.inSchema(
      `UPDATE $s.shards SET node = CASE WHEN node LIKE '${functionPrefix}%' THEN '${functionPrefix}' END WHERE node = $1`,
    ),
    [node],
  );
  await connection.query(database.inSchema("DELETE FROM $s.nodes WHERE node = $1"), [node]);
}

/** Locks the shards that no other connection has locked, and returns them. The locks end with the connection. */
async function tryLockShards(
  connection: OwnConnection,
  space: string,
  shards: readonly number[],
): Promise<number[]> {
  const { rows } = await connection.query(
    "SELECT shard, pg_try_advisory_lock(hashtext($1), shard) AS held FROM unnest($2::int[]) AS shard",
    [space, [...shards]],
  );
  return rows.filter(({ held }) => held === true).map(({ shard }) => Number(shard));
}

async function unlockShards(
  connection: OwnConnection,
  space: string,
  shards: readonly number[],
): Promise<void> {
  await connection.query("SELECT pg_advisory_unlock(hashtext($1), shard) FROM unnest($2::int[]) AS shard", [
    space,
    [...shards],
  ]);
}
