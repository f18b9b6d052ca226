import { systemClock } from "../../base/clock.ts";
import { PostgresDatabase, type PostgresRow, type QueryOptions } from "../../postgres/database.ts";
import {
  checkMigrated,
  type Migration,
  type Migrations,
  migrate,
  quotedSchema,
} from "../../postgres/migrate.ts";
import type { WaitClock } from "../shared/durable-time.ts";
import { listColumns, waitingSessionsIndex } from "./list-columns.ts";
import { shardCount } from "./shards.ts";

/** The most connections of a node, in addition to its three direct ones. */
const defaultConnections = 10;

/** Columns of type bigint, which `pg` returns as text; the values in kit's tables fit into a number. */
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
  "begun_at",
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

/** Opens the engine's tables, and creates or migrates them. In the `sql` of its methods, `$s` stands for the schema. */
export async function openEngineDatabase(options: {
  readonly url: string;
  readonly directUrl?: string | undefined;
  readonly schema: string;
  readonly maxConnections?: number | undefined;
  /** Whether nothing is created or changed; then opening throws `not_found` if there are no tables. */
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
    /** The address for the connections that hold locks and listen. */
    directUrl: options.directUrl ?? options.url,
    schema,
    inSchema,
    async rows<Row>(sql: string, values: unknown[] = [], options?: QueryOptions): Promise<Row[]> {
      return toRows<Row>(await database.query(inSchema(sql), values, options));
    },
    async row<Row>(sql: string, values: unknown[] = [], options?: QueryOptions): Promise<Row | undefined> {
      return toRows<Row>(await database.query(inSchema(sql), values, options))[0];
    },
    async run(sql: string, values: unknown[] = []): Promise<void> {
      await database.query(inSchema(sql), values);
    },
    /** Runs `work` in one transaction. */
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
 * The time of the database on this node: the time of `performance.now` plus an offset that each heartbeat measures. It
 * decides when work is due; the clock of the node's machine does not matter.
 */
export class DatabaseClock implements WaitClock {
  readonly sleep: WaitClock["sleep"] = systemClock.sleep;
  #ahead = Date.now() - performance.now();
  #latest = 0;

  /** Sets the clock to a time of the database; the query was sent and answered at these times of `performance.now`. */
  set(databaseMs: number, sentAt: number, answeredAt: number): void {
    this.#ahead = databaseMs - (sentAt + answeredAt) / 2;
  }

  /** The time in ms since 1970; it never goes back. */
  now(): number {
    this.#latest = Math.max(this.#latest, Math.floor(performance.now() + this.#ahead));
    return this.#latest;
  }

  toWall(ms: number): number {
    return ms;
  }
}

/**
 * The tables of accepted work. Times are milliseconds since 1970, by the database's clock. `seq` is the position in the
 * queue: a redriven input gets a new one. `fence` is the shard's fence under which the row was claimed. Fences begin at the
 * current time, so that those of a recreated database are above the fences that sessions have stored. Most rows are
 * completed, so the indices for the others exclude these.
 */
const workTables: Migration = (schema) => `
CREATE TABLE ${schema}.shards (
  shard int PRIMARY KEY,
  fence bigint NOT NULL DEFAULT extract(epoch FROM now())::bigint,
  node text
) WITH (fillfactor = 50);
INSERT INTO ${schema}.shards (shard) SELECT generate_series(0, ${shardCount - 1});

CREATE TABLE ${schema}.nodes (
  node text PRIMARY KEY,
  backend int NOT NULL,
  beat timestamptz NOT NULL,
  started_at timestamptz NOT NULL,
  version text NOT NULL,
  host text NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE ${schema}.dispatches (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  dispatch_id text COLLATE "C" NOT NULL UNIQUE,
  agent text NOT NULL,
  instance_id text NOT NULL,
  session text NOT NULL,
  shard int NOT NULL,
  status text NOT NULL,
  attempts int NOT NULL DEFAULT 0,
  fence bigint NOT NULL DEFAULT 0,
  cancelling boolean NOT NULL DEFAULT false,
  idempotency_key text,
  accepted_at bigint NOT NULL,
  next_attempt_at bigint,
  started_at bigint,
  ended_at bigint,
  error text,
  input text NOT NULL,
  result text,
  owner text NOT NULL,
  trace text
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX dispatches_by_key ON ${schema}.dispatches (agent, instance_id, idempotency_key)
  WHERE idempotency_key IS NOT NULL;
CREATE INDEX dispatches_by_agent ON ${schema}.dispatches (agent, dispatch_id);
CREATE INDEX dispatches_by_instance ON ${schema}.dispatches (instance_id, dispatch_id);
CREATE INDEX dispatches_by_status ON ${schema}.dispatches (status, dispatch_id) WHERE status <> 'completed';
CREATE INDEX dispatches_queued ON ${schema}.dispatches (shard, seq) WHERE status = 'queued';
CREATE INDEX dispatches_running ON ${schema}.dispatches (shard) WHERE status = 'running';
CREATE INDEX dispatches_in_session ON ${schema}.dispatches (agent, instance_id, session, seq) WHERE status = 'queued';
CREATE INDEX dispatches_of_owner ON ${schema}.dispatches (owner) WHERE status = 'queued';
CREATE INDEX dispatches_ended ON ${schema}.dispatches (ended_at) WHERE ended_at IS NOT NULL;

CREATE SEQUENCE ${schema}.run_queue;
CREATE TABLE ${schema}.runs (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_id text NOT NULL UNIQUE,
  workflow text NOT NULL,
  shard int NOT NULL,
  status text NOT NULL,
  fence bigint NOT NULL DEFAULT 0,
  cancelling boolean NOT NULL DEFAULT false,
  crashes int NOT NULL DEFAULT 0,
  crashed_at int NOT NULL DEFAULT 0,
  idempotency_key text,
  accepted_at bigint NOT NULL,
  started_at bigint,
  ended_at bigint,
  wake_at bigint,
  queued_as bigint NOT NULL DEFAULT nextval('${schema}.run_queue'),
  error text,
  payload text NOT NULL,
  result text,
  owner text NOT NULL,
  trace text,
  parent text
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX runs_by_key ON ${schema}.runs (workflow, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX runs_by_workflow ON ${schema}.runs (workflow, id);
CREATE INDEX runs_by_status ON ${schema}.runs (status, id) WHERE status <> 'completed';
CREATE INDEX runs_queued ON ${schema}.runs (shard, queued_as) WHERE status = 'queued';
CREATE INDEX runs_running ON ${schema}.runs (shard) WHERE status = 'running';
CREATE INDEX runs_by_wake ON ${schema}.runs (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX runs_of_owner ON ${schema}.runs (owner) WHERE status = 'queued';
CREATE INDEX runs_by_parent ON ${schema}.runs (parent) WHERE parent IS NOT NULL;
CREATE INDEX runs_ended ON ${schema}.runs (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE ${schema}.run_journal (
  run bigint NOT NULL,
  position int NOT NULL,
  kind text NOT NULL,
  name text NOT NULL,
  state text NOT NULL,
  deadline bigint,
  ended_as int,
  value text,
  PRIMARY KEY (run, position)
);
CREATE INDEX run_journal_open ON ${schema}.run_journal (run, position) WHERE state = 'pending';

CREATE TABLE ${schema}.run_signals (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run bigint NOT NULL,
  name text NOT NULL,
  taken boolean NOT NULL DEFAULT false,
  idempotency_key text,
  accepted_at bigint NOT NULL,
  payload text
);
CREATE INDEX run_signals_by_name ON ${schema}.run_signals (run, name, id) WHERE NOT taken;
CREATE UNIQUE INDEX run_signals_by_key ON ${schema}.run_signals (run, idempotency_key)
  WHERE idempotency_key IS NOT NULL;
CREATE INDEX run_signals_by_run ON ${schema}.run_signals (run);

CREATE TABLE ${schema}.schedules (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL UNIQUE,
  workflow text NOT NULL,
  cron text NOT NULL,
  timezone text,
  next_at bigint,
  last_run_id text,
  payload text,
  round int NOT NULL DEFAULT 0
);

CREATE TABLE ${schema}.outcomes (
  outcome_key text PRIMARY KEY,
  claim text NOT NULL,
  claimed_until bigint NOT NULL,
  done_at bigint,
  value text
);
CREATE INDEX outcomes_by_age ON ${schema}.outcomes (coalesce(done_at, claimed_until));
`;

/** A stream without a writer was closed cleanly: its next writer continues at the last index. */
const eventTables: Migration = (schema) => `
CREATE TABLE ${schema}.streams (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL UNIQUE,
  writer text,
  last bigint NOT NULL DEFAULT 0,
  events bigint NOT NULL DEFAULT 0,
  ended boolean NOT NULL DEFAULT false
) WITH (fillfactor = 70);
CREATE INDEX streams_by_writer ON ${schema}.streams (writer) WHERE writer IS NOT NULL;
CREATE TABLE ${schema}.batches (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  stream_id bigint NOT NULL,
  first bigint NOT NULL,
  last bigint NOT NULL,
  events int NOT NULL,
  written_ms bigint NOT NULL,
  data text NOT NULL
);
CREATE INDEX batches_by_stream ON ${schema}.batches (stream_id, last);
CREATE INDEX batches_by_age ON ${schema}.batches (written_ms);
`;

const clusterTables: Migration = (schema) => `
ALTER TABLE ${schema}.nodes ADD COLUMN address text;
CREATE TABLE ${schema}.secrets (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE ${schema}.approvals (
  approval_id text PRIMARY KEY,
  agent text NOT NULL,
  instance_id text NOT NULL,
  session text NOT NULL,
  requested_at text NOT NULL,
  node text NOT NULL,
  request text NOT NULL,
  decision text,
  written_at bigint NOT NULL
);
CREATE INDEX approvals_by_instance ON ${schema}.approvals (agent, instance_id);
CREATE INDEX approvals_by_node ON ${schema}.approvals (node);
`;

/** How a node takes shards: nodes that take them only on request do not count as sharing nodes. */
const askedNodes: Migration = (schema) =>
  `ALTER TABLE ${schema}.nodes ADD COLUMN takes text NOT NULL DEFAULT 'share';`;
/** State of nodes for operators. `clock_ahead_ms`: the time of the machine's clock minus that of the database. */
const nodeStates: Migration = (schema) => `
ALTER TABLE ${schema}.nodes ADD COLUMN project text, ADD COLUMN draining boolean NOT NULL DEFAULT false,
  ADD COLUMN clock_ahead_ms bigint, ADD COLUMN news_age_ms int;
`;

/** The reason that a node gets no work: JSON of the error's message and hint. */
const nodeProblems: Migration = (schema) => `ALTER TABLE ${schema}.nodes ADD COLUMN problem text;`;

/**
 * A claim writes only one page: no index uses a column that a claim changes, neither as a key nor in its predicate, and
 * pages reserve space for the new version of a row. Open work has no `ended_at`. Ended work without a result has failed or
 * was cancelled.
 */
const cheapClaims: Migration = (schema) => `
ALTER TABLE ${schema}.dispatches DROP CONSTRAINT dispatches_pkey, DROP CONSTRAINT dispatches_dispatch_id_key,
  ADD PRIMARY KEY (dispatch_id);
ALTER TABLE ${schema}.dispatches SET (fillfactor = 60);
DROP INDEX ${schema}.dispatches_by_status, ${schema}.dispatches_queued, ${schema}.dispatches_running,
  ${schema}.dispatches_in_session, ${schema}.dispatches_of_owner, ${schema}.dispatches_ended;
CREATE INDEX dispatches_open ON ${schema}.dispatches (shard, seq) WHERE ended_at IS NULL;
CREATE INDEX dispatches_open_of_owner ON ${schema}.dispatches (owner) WHERE ended_at IS NULL;
CREATE INDEX dispatches_without_result ON ${schema}.dispatches (dispatch_id) WHERE ended_at IS NOT NULL AND result IS NULL;
`;

/** The schedules that a node's files declare; null until they are known. */
const declaredSchedules: Migration = (schema) => `ALTER TABLE ${schema}.nodes ADD COLUMN schedules text[];`;

/** Records of webhook deliveries, as in the embedded engine. Nodes of earlier versions do not use the table. */
const deliveryTable: Migration = (schema) => `
CREATE TABLE ${schema}.deliveries (
  record_id text COLLATE "C" PRIMARY KEY,
  webhook text NOT NULL,
  outcome text NOT NULL,
  delivery_id text,
  record text NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX deliveries_by_webhook ON ${schema}.deliveries (webhook, record_id);
CREATE INDEX deliveries_by_outcome ON ${schema}.deliveries (outcome, record_id) WHERE outcome <> 'accepted';
CREATE INDEX deliveries_by_sender ON ${schema}.deliveries (delivery_id, record_id) WHERE delivery_id IS NOT NULL;
CREATE INDEX deliveries_unverified ON ${schema}.deliveries (webhook, record_id) WHERE delivery_id IS NULL;
`;

/** The ids of streams begin at the current time, so that those of recreated tables differ from those that readers know. */
const laterStreamIds: Migration = (schema) =>
  `SELECT setval(pg_get_serial_sequence('${schema}.streams', 'id'), extract(epoch FROM now())::bigint);`;
/** Finds the runs that wait for the end of a run: the value of such an open step is the id of the awaited run. */
const awaitedRuns: Migration = (schema) => `
CREATE INDEX run_journal_awaited ON ${schema}.run_journal (value) WHERE state = 'pending' AND kind = 'step';
`;

/**
 * Waiting calls of every kind. `work` is the dispatch or run that asks again after a crash; `shard` and `fence` name the lease
 * under which the call was asked. Nodes of earlier versions use the view.
 */
const waitingCallTable: Migration = (schema) => `
ALTER TABLE ${schema}.approvals RENAME TO waiting_calls;
ALTER TABLE ${schema}.waiting_calls RENAME COLUMN approval_id TO call_id;
ALTER TABLE ${schema}.waiting_calls ADD COLUMN kind text NOT NULL DEFAULT 'approval', ADD COLUMN operation_id text,
  ADD COLUMN work text, ADD COLUMN shard int, ADD COLUMN fence bigint, ADD COLUMN args_hash text;
UPDATE ${schema}.waiting_calls AS c SET operation_id = request::json ->> 'operation_id',
  work = coalesce(request::json ->> 'run_id', (SELECT dispatch_id FROM ${schema}.dispatches
    WHERE dispatch_id = 'dispatch_' || substr(c.request::json ->> 'operation_id', 4)));
CREATE VIEW ${schema}.approvals AS SELECT call_id AS approval_id, agent, instance_id, session, requested_at, node, request,
  decision, written_at FROM ${schema}.waiting_calls;
`;

/**
 * `CountedAttempts`, and whether running work only waits. `charged`: the nodes whose death was counted, in case one lives.
 * `former`: the owner that vanished without giving the shard up.
 */
const countedAttempts: Migration = (schema) => `
ALTER TABLE ${schema}.shards ADD COLUMN former text;
ALTER TABLE ${schema}.dispatches ADD COLUMN spent int NOT NULL DEFAULT 0, ADD COLUMN progress int NOT NULL DEFAULT 0,
  ADD COLUMN idle boolean NOT NULL DEFAULT false, ADD COLUMN charged text[] NOT NULL DEFAULT '{}';
ALTER TABLE ${schema}.runs ADD COLUMN idle boolean NOT NULL DEFAULT false,
  ADD COLUMN charged text[] NOT NULL DEFAULT '{}';
UPDATE ${schema}.dispatches SET spent = attempts WHERE ended_at IS NULL;
`;

/** Why a run waits although nothing is open: JSON of the problem of its code. */
const problemColumn: Migration = (schema) => `
ALTER TABLE ${schema}.runs ADD COLUMN problem text;
CREATE INDEX runs_held ON ${schema}.runs (shard) WHERE problem IS NOT NULL;
`;

/** Decided calls stay for as long as ended work: lists and decisions read only the others. */
const openCalls: Migration = (schema) => `
CREATE INDEX waiting_calls_open ON ${schema}.waiting_calls (requested_at) WHERE decision IS NULL;
CREATE INDEX waiting_calls_by_age ON ${schema}.waiting_calls (written_at);
`;

/** `EntryHead.made_after`; null in the entries of nodes of earlier versions. */
const madeAfterColumn: Migration = (schema) => `ALTER TABLE ${schema}.run_journal ADD COLUMN made_after int;`;

/** The steps of the schema. A released step never changes; a new step is added at the end. */
const steps: readonly Migration[] = [
  (schema) => workTables(schema) + eventTables(schema),
  clusterTables,
  askedNodes,
  nodeStates,
  nodeProblems,
  cheapClaims,
  declaredSchedules,
  deliveryTable,
  laterStreamIds,
  waitingCallTable,
  awaitedRuns,
  countedAttempts,
  problemColumn,
  openCalls,
  madeAfterColumn,
  listColumns,
  waitingSessionsIndex,
];

/** The migrations of the engine's tables in a quoted schema. */
function engineMigrations(schema: string, migrations: readonly Migration[] = steps): Migrations {
  // The number is kit's own ("kite").
  return {
    steps: migrations,
    schema,
    table: "engine_migrations",
    lockId: 0x6b697465,
    store: "The engine's store",
  };
}
