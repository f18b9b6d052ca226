import type { Database } from "./database.ts";
import { addressOf } from "./database.ts";
import type { HistoryEntry } from "./history.ts";
import type { Kit, Kits } from "./kits.ts";

/** The facts that the harness needs about a kind of engine that several machines share. */
export interface ClusterEngine {
  readonly kind: string;
  /** Lines below `[engine]`. */
  readonly toml: string;
  /** The environment of a node's process; it reaches the database by its own way. */
  environment(kit: Kit): Readonly<Record<string, string>>;
  /** SQL that makes the database write down who claims and who settles; run once the tables are there. */
  readonly recorder: string;
  /** The entries that the recorder has written. */
  history(database: Database): Promise<readonly HistoryEntry[]>;
  /** How many of these inputs have not ended. */
  open(database: Database, ids: readonly string[]): Promise<number>;
  /** The times at which schedules have started runs of a workflow. */
  occurrences(database: Database, workflow: string): Promise<readonly string[]>;
  /** Whether so many nodes share the work. */
  isBalanced(database: Database, nodes: number): Promise<boolean>;
  /** Servers beside the database, started before the first node. */
  start?(kits: Kits): Promise<void>;
  stop?(): Promise<void>;
}

const schema = "kit";

export const postgresEngine: ClusterEngine = {
  kind: "postgres",
  toml: 'kind = "postgres"',
  environment: ({ way }) => ({ KIT_ENGINE_URL: addressOf(way.port) }),
  recorder: `
    CREATE TABLE ${schema}.recorded (
      number bigint GENERATED ALWAYS AS IDENTITY, at double precision NOT NULL DEFAULT extract(epoch FROM clock_timestamp()) * 1000,
      what text NOT NULL, id text, line text, shard int, fence bigint, status text);
    CREATE FUNCTION ${schema}.record_dispatch() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        INSERT INTO ${schema}.recorded (what, id, line, shard, fence, status)
        VALUES (CASE new.status WHEN 'running' THEN 'claimed' WHEN 'queued' THEN 'queued' ELSE 'settled' END,
          new.dispatch_id, new.instance_id, new.shard, new.fence, new.status);
        RETURN new;
      END $$;
    CREATE TRIGGER record_dispatches AFTER UPDATE OF status ON ${schema}.dispatches FOR EACH ROW
      WHEN (new.status <> old.status OR new.fence <> old.fence) EXECUTE FUNCTION ${schema}.record_dispatch();
    CREATE FUNCTION ${schema}.record_owner() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        INSERT INTO ${schema}.recorded (what, shard, fence) VALUES ('owned', new.shard, new.fence);
        RETURN new;
      END $$;
    CREATE TRIGGER record_owners AFTER UPDATE OF fence ON ${schema}.shards FOR EACH ROW EXECUTE FUNCTION ${schema}.record_owner();`,
  async history(database) {
    const { rows } = await database.query(
      `SELECT at, what, id, line, shard, fence::float8 AS fence, status FROM ${schema}.recorded WHERE what <> 'queued' ORDER BY number`,
    );
    return rows as HistoryEntry[];
  },
  async open(database, ids) {
    const { rows } = await database.query(
      `SELECT count(*)::int AS open FROM ${schema}.dispatches WHERE dispatch_id = ANY($1) AND ended_at IS NULL`,
      [ids],
    );
    return rows[0]?.open;
  },
  async occurrences(database, workflow) {
    const { rows } = await database.query(
      `SELECT idempotency_key FROM ${schema}.runs WHERE workflow = $1 AND idempotency_key LIKE 'schedule:%'`,
      [workflow],
    );
    return rows.map(({ idempotency_key }) => /[^:]+:[^:]+:[^:]+$/.exec(idempotency_key)?.[0] ?? "");
  },
  async isBalanced(database, nodes) {
    const { rows } = await database.query(
      `SELECT count(DISTINCT pid)::int AS nodes, count(*)::int AS shards FROM pg_locks WHERE locktype = 'advisory' AND granted
       AND classid = hashtext($1)::oid`,
      [`kit shards of "${schema}"`],
    );
    return rows[0]?.nodes === nodes && rows[0]?.shards === 256;
  },
};
