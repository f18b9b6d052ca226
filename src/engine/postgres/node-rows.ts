import type { KitError } from "../../base/kit-error.ts";
import type { OwnConnection } from "../../postgres/pool.ts";
import { databaseNow, type EngineDatabase } from "./engine-database.ts";
import type { Taker } from "./shard-rows.ts";

/** After this silence, by the database's clock, the other nodes end a node's connection, which releases its locks. */
export const silenceMs = 3_000;

/** The same for a node whose connection has ended: it may be back at once. */
const goneMs = 1_500;

/** The pause between two heartbeats. */
export const beatMs = 200;

/** A heartbeat between two writes of the row. A node that was removed as silent writes its row itself. */
export const beatSql = "UPDATE $s.nodes SET beat = clock_timestamp() WHERE node = $1 RETURNING 1";

/** The state of a node, for its row. */
export interface NodeState {
  readonly node: string;
  readonly host: string;
  readonly address: string | undefined;
  readonly version: string;
  readonly takes: "share" | "asked" | "called";
  readonly project: string | undefined;
  readonly isDraining: boolean;
  readonly newsAgeMs: number | undefined;
  readonly problem: KitError | undefined;
  /** The schedules that its files declare; `undefined` until they are known. */
  readonly schedules: readonly string[] | undefined;
  /** Whether the connection was opened since the last write. */
  readonly isNew: boolean;
}

/** Writes the row of a node. Returns the time of the database, and the number of other nodes that take shards in the same way. */
export async function writeNode(
  connection: OwnConnection,
  database: EngineDatabase,
  state: NodeState,
): Promise<{ readonly now: number; readonly others: number }> {
  const { node, host, address, version, takes, project, isDraining, newsAgeMs, problem, schedules, isNew } =
    state;
  const { rows } = await connection.query(
    database.inSchema(
      `WITH own AS (
         INSERT INTO $s.nodes (node, backend, beat, started_at, version, host, address, takes, project, draining,
           clock_ahead_ms, news_age_ms, problem, schedules)
         VALUES ($1, $2, clock_timestamp(), clock_timestamp(), $3, $4, $5, $6, $7, $8, $9::bigint - ${databaseNow}, $10, $11, $12)
         ON CONFLICT (node) DO UPDATE SET ${isNew ? "backend = excluded.backend, " : ""}beat = excluded.beat, address = excluded.address,
           draining = excluded.draining, clock_ahead_ms = excluded.clock_ahead_ms, news_age_ms = excluded.news_age_ms,
           problem = excluded.problem, schedules = excluded.schedules)
       SELECT ${databaseNow} AS now,
         (SELECT count(*) FROM $s.nodes WHERE node <> $1 AND takes = $6 AND NOT draining) AS others`,
    ),
    [
      ...[
        node,
        connection.backend,
        version,
        host,
        address,
        takes,
        project,
        isDraining,
        Date.now(),
        newsAgeMs,
      ],
      problem === undefined ? null : JSON.stringify({ message: problem.message, hint: problem.hint }),
      schedules,
    ],
  );
  return { now: Number(rows[0]?.now), others: Number(rows[0]?.others) };
}

/** Deletes the rows of nodes that are silent, and ends their connections. */
export async function removeDeadNodes({ connection, database, node, space }: Taker): Promise<void> {
  const { rows } = await connection.query(
    database.inSchema(
      `WITH silent AS (
         DELETE FROM $s.nodes WHERE node <> $1
           AND (beat < clock_timestamp() - interval '${silenceMs} ms'
             OR beat < clock_timestamp() - interval '${goneMs} ms' AND backend NOT IN (SELECT pid FROM pg_stat_activity))
         RETURNING backend)
       SELECT DISTINCT backend FROM silent JOIN pg_locks ON pid = backend
       WHERE locktype = 'advisory' AND classid = hashtext($2)::oid`,
    ),
    [node, space],
  );
  for (const { backend } of rows) {
    // Without the right to end it (same role, or pg_signal_backend), Postgres itself ends the silent connection.
    await connection.query("SELECT pg_terminate_backend($1)", [backend]).catch(() => undefined);
  }
}
