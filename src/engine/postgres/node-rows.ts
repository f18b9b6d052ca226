import type { KitError } from "../../base/kit-error.ts";
import type { OwnConnection } from "../../postgres/pool.ts";
import { databaseNow, type EngineDatabase } from "./engine-database.ts";
import { quick } from "./quick-commit.ts";
import type { Taker } from "./shard-rows.ts";
import { lockSpaceOf } from "./shards.ts";

/** After this silence, by the database's clock, the other nodes end a node's connection, which releases its locks. */
export const silenceMs = 3_000;

/** The same for a node whose connection has ended: it may be back at once. */
const goneMs = 1_500;

/** The pause between two heartbeats. */
export const beatMs = 200;

/**
 * A heartbeat between two writes of the row. A node that was removed as silent writes its row itself. A crash of the database ends
 * the connections too, so a heartbeat is not worth a flush.
 */
export const beatSql = `WITH ${quick}
  UPDATE $s.nodes SET beat = clock_timestamp() FROM quick WHERE node = $1 RETURNING 1`;

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

/** SQL: whether a node is silent. Only the few late ones are looked up among the connections. */
const isSilent = `CASE WHEN beat >= clock_timestamp() - interval '${goneMs} ms' THEN false
  ELSE beat < clock_timestamp() - interval '${silenceMs} ms' OR NOT EXISTS (SELECT 1 FROM pg_stat_get_activity(backend)) END`;

/** The answer to a heartbeat. */
export interface Beat {
  /** The time of the database. */
  readonly now: number;
  /** The number of other nodes that take shards in the same way. */
  readonly others: number;
  /** Whether another node is silent. */
  readonly has_silent: boolean;
}

/** Writes the row of a node. */
export async function writeNode(
  connection: OwnConnection,
  database: EngineDatabase,
  state: NodeState,
): Promise<Beat> {
  const { node, host, address, version, takes, project, isDraining, newsAgeMs, problem, schedules, isNew } =
    state;
  const { rows } = await connection.query(
    database.inSchema(
      `WITH ${quick}, own AS (
         INSERT INTO $s.nodes (node, backend, beat, started_at, version, host, address, takes, project, draining,
           clock_ahead_ms, news_age_ms, problem, schedules)
         SELECT $1::text, $2::int, clock_timestamp(), clock_timestamp(), $3, $4, $5, $6::text, $7, $8::boolean,
           $9::bigint - ${databaseNow}, $10::int, $11, $12::text[] FROM quick
         ON CONFLICT (node) DO UPDATE SET ${isNew ? "backend = excluded.backend, " : ""}beat = excluded.beat, address = excluded.address,
           draining = excluded.draining, clock_ahead_ms = excluded.clock_ahead_ms, news_age_ms = excluded.news_age_ms,
           problem = excluded.problem, schedules = excluded.schedules)
       SELECT ${databaseNow} AS now,
         (SELECT count(*) FROM $s.nodes WHERE node <> $1 AND takes = $6 AND NOT draining) AS others,
         EXISTS (SELECT 1 FROM $s.nodes WHERE node <> $1 AND ${isSilent}) AS has_silent`,
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
  const [row] = rows;
  return { now: Number(row?.now), others: Number(row?.others), has_silent: row?.has_silent === true };
}

/** Deletes the rows of silent nodes, and ends their connections. */
export async function removeDeadNodes({ connection, database, node }: Taker): Promise<void> {
  const { rows } = await connection.query(
    database.inSchema(
      `WITH silent AS (
         DELETE FROM $s.nodes WHERE node <> $1 AND ${isSilent}
         RETURNING backend)
       SELECT DISTINCT backend FROM silent JOIN pg_locks ON pid = backend
       WHERE locktype = 'advisory' AND classid = hashtext($2)::oid`,
    ),
    [node, lockSpaceOf(database)],
  );
  for (const { backend } of rows) {
    // Without the right to end it (same role, or pg_signal_backend), Postgres itself ends the silent connection.
    await connection.query("SELECT pg_terminate_backend($1)", [backend]).catch(() => undefined);
  }
}
