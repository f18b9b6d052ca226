import { systemClock } from "../../base/clock.ts";
import { PostgresDatabase, type PostgresRow } from "../../postgres/database.ts";
import { checkMigrated, migrate, quotedSchema } from "../../postgres/migrate.ts";
import type { WaitClock } from "../shared/durable-time.ts";
import { engineMigrations } from "./engine-tables.ts";

/** Connections that a node holds at most, beside its two direct ones. */
const defaultConnections = 10;

/** Columns that Postgres gives as text, because a number of JavaScript may not hold them: those of kit's tables do. */
const numbers = [
  "seq",
  "id",
  "fence",
  "accepted_at",
  "next_attempt_at",
  "started_at",
  "ended_at",
  "wake_at",
  "queued_as",
  "deadline",
  "next_at",
  "last",
  "first",
  "events",
  "count",
  "waiting",
  "at",
  "now",
] as const;

export type EngineDatabase = Awaited<ReturnType<typeof openEngineDatabase>>;

/** Opens the engine's tables, and makes them or brings them up to date. `sql` is a statement with `$s` for the schema. */
export async function openEngineDatabase(options: {
  readonly url: string;
  readonly directUrl?: string | undefined;
  readonly schema: string;
  readonly maxConnections?: number | undefined;
  /** Whether nothing is made or changed; throws `not_found` where there are no tables. */
  readonly isReadOnly?: boolean | undefined;
}) {
  const schema = quotedSchema(options.schema);
  const database = new PostgresDatabase({
    url: options.url,
    maxConnections: options.maxConnections ?? defaultConnections,
    store: "The engine's store",
    prepare: (pool) =>
      (options.isReadOnly === true ? checkMigrated : migrate)(pool, engineMigrations(schema)),
  });
  const inSchema = (sql: string): string => sql.replaceAll("$s.", `${schema}.`);
  await database.open();
  return {
    /** For the connections that hold locks and listen. */
    directUrl: options.directUrl ?? options.url,
    schema,
    inSchema,
    async rows<Row>(sql: string, values: unknown[] = []): Promise<Row[]> {
      return toRows<Row>(await database.query(inSchema(sql), values));
    },
    async row<Row>(sql: string, values: unknown[] = []): Promise<Row | undefined> {
      return toRows<Row>(await database.query(inSchema(sql), values))[0];
    },
    async run(sql: string, values: unknown[] = []): Promise<void> {
      await database.query(inSchema(sql), values);
    },
    /** All statements of `work`, or none. */
    transaction: <Value>(
      work: (ask: <Row>(sql: string, values?: unknown[]) => Promise<Row[]>) => Promise<Value>,
    ): Promise<Value> =>
      database.transaction((ask) =>
        work(async <Row>(sql: string, values: unknown[] = []) =>
          toRows<Row>(await ask(inSchema(sql), values)),
        ),
      ),
    close: () => database.close(),
  };
}

function toRows<Row>(rows: readonly PostgresRow[]): Row[] {
  for (const row of rows as Record<string, unknown>[]) {
    for (const name of numbers) if (typeof row[name] === "string") row[name] = Number(row[name]);
  }
  return rows as unknown as Row[];
}

/** The database's time of day, in SQL: ms since 1970. */
export const databaseNow = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/**
 * The time of the database, on this node: the process's own count plus a distance that each heartbeat measures. It decides what is
 * due; the time of day of the node's machine does not matter.
 */
export class DatabaseClock implements WaitClock {
  readonly sleep: WaitClock["sleep"] = systemClock.sleep;
  #ahead = Date.now() - performance.now();
  #latest = 0;

  /** Notes what the database said in answer to a question that was sent and answered at these times of `performance.now`. */
  set(databaseMs: number, sentAt: number, answeredAt: number): void {
    this.#ahead = databaseMs - (sentAt + answeredAt) / 2;
  }

  /** It never goes back. */
  now(): number {
    this.#latest = Math.max(this.#latest, Math.floor(performance.now() + this.#ahead));
    return this.#latest;
  }

  toWall(ms: number): number {
    return ms;
  }
}
