import { join } from "node:path";
import { openStore, openStoredFile, type StoreDefinition } from "../../../sqlite/open-store.ts";
import { progressTable } from "../../../sqlite/progress.ts";
import type { Database } from "../../../sqlite/statements.ts";

/** The blobs in use, maintained by triggers: a file that no row names can be removed. */
const blobTables = `
CREATE TABLE blob_uses (
  blob TEXT NOT NULL,
  user TEXT NOT NULL,
  PRIMARY KEY (blob, user)
) STRICT, WITHOUT ROWID;
`;

/**
 * One row: the process that works on this folder. The fence stays after its release. `locked`: the owner also holds the
 * lock of `engine.lock`, so a process that gets this lock knows that the owner is dead.
 */
const leaseTables = `
CREATE TABLE lease (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  fence INTEGER NOT NULL,
  owner TEXT,
  locked INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
INSERT INTO lease (id, fence, locked, expires_at) VALUES (1, 0, 0, 0);
`;

/**
 * `seq` is the position in the queue: a redriven input gets a new one. Times are milliseconds since 1970. Most rows are
 * completed, so the indices for the others exclude these.
 */
const dispatchTables: string = `
CREATE TABLE dispatches (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  dispatch_id TEXT NOT NULL,
  agent TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  session TEXT NOT NULL,
  status TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  fence INTEGER NOT NULL DEFAULT 0,
  cancelling INTEGER NOT NULL DEFAULT 0,
  idempotency_key TEXT,
  accepted_at INTEGER NOT NULL,
  next_attempt_at INTEGER,
  started_at INTEGER,
  ended_at INTEGER,
  error TEXT,
  input TEXT NOT NULL,
  result TEXT
) STRICT;
CREATE UNIQUE INDEX dispatches_by_id ON dispatches (dispatch_id);
CREATE UNIQUE INDEX dispatches_by_key ON dispatches (agent, instance_id, idempotency_key)
  WHERE idempotency_key IS NOT NULL;
CREATE INDEX dispatches_by_agent ON dispatches (agent, dispatch_id);
CREATE INDEX dispatches_by_instance ON dispatches (instance_id, dispatch_id);
CREATE INDEX dispatches_by_status ON dispatches (status, dispatch_id) WHERE status <> 'completed';
CREATE INDEX dispatches_waiting ON dispatches (agent, instance_id, session) WHERE status = 'queued';
CREATE INDEX dispatches_cancelling ON dispatches (dispatch_id) WHERE cancelling = 1;
CREATE INDEX dispatches_ended ON dispatches (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE dispatch_load (waiting INTEGER NOT NULL) STRICT;
INSERT INTO dispatch_load VALUES (0);
CREATE TRIGGER dispatches_added AFTER INSERT ON dispatches WHEN new.status = 'queued'
BEGIN UPDATE dispatch_load SET waiting = waiting + 1; END;
CREATE TRIGGER dispatches_changed AFTER UPDATE OF status ON dispatches
WHEN (new.status = 'queued') <> (old.status = 'queued')
BEGIN UPDATE dispatch_load SET waiting = waiting + (new.status = 'queued') - (old.status = 'queued'); END;
CREATE TRIGGER dispatches_removed AFTER DELETE ON dispatches WHEN old.status = 'queued'
BEGIN UPDATE dispatch_load SET waiting = waiting - 1; END;
${noteBlobs("dispatches", "dispatch_id", ["input", "result"])}`;

/**
 * The tables of runs. Times are milliseconds since 1970; payloads and results have the stored form of `Blobs.store`.
 *
 * `crashes` counts how often the process died during a run without a new entry in its journal, which had `crashed_at`
 * entries at the last crash. `run_queue` lists the queued runs in the order in which they were queued; numbers are never
 * reused, so a reader can continue after the last number that it has read.
 */
const runTables: string = `
CREATE TABLE runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id TEXT NOT NULL,
  workflow TEXT NOT NULL,
  status TEXT NOT NULL,
  cancelling INTEGER NOT NULL DEFAULT 0,
  crashes INTEGER NOT NULL DEFAULT 0,
  crashed_at INTEGER NOT NULL DEFAULT 0,
  idempotency_key TEXT,
  accepted_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER,
  wake_at INTEGER,
  error TEXT,
  payload TEXT NOT NULL,
  result TEXT
) STRICT;
CREATE UNIQUE INDEX runs_by_run_id ON runs (run_id);
CREATE UNIQUE INDEX runs_by_key ON runs (workflow, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX runs_by_workflow ON runs (workflow, id);
CREATE INDEX runs_by_status ON runs (status, id) WHERE status <> 'completed';
CREATE INDEX runs_by_wake ON runs (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX runs_cancelling ON runs (run_id) WHERE cancelling = 1;
CREATE INDEX runs_by_end ON runs (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE run_queue (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  run INTEGER NOT NULL UNIQUE
) STRICT;

CREATE TABLE run_journal (
  run INTEGER NOT NULL,
  position INTEGER NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  state TEXT NOT NULL,
  deadline INTEGER,
  ended_as INTEGER,
  value TEXT
) STRICT;
CREATE UNIQUE INDEX run_journal_by_position ON run_journal (run, position);

CREATE TABLE run_signals (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run INTEGER NOT NULL,
  name TEXT NOT NULL,
  taken INTEGER NOT NULL DEFAULT 0,
  idempotency_key TEXT,
  accepted_at INTEGER NOT NULL,
  payload TEXT
) STRICT;
CREATE INDEX run_signals_by_name ON run_signals (run, taken, name, id);
CREATE UNIQUE INDEX run_signals_by_key ON run_signals (run, idempotency_key) WHERE idempotency_key IS NOT NULL;
${noteBlobs("runs", "id", ["payload", "result"])}
${noteBlobs("run_journal", "run || '/' || position", ["value"])}
${noteBlobs("run_signals", "id", ["payload"])}`;

/** Finds the open waits of a run, however long its journal is. */
const openWaitsIndex: string = `
CREATE INDEX run_journal_open ON run_journal (run, position) WHERE state = 'pending';
`;

/** The end of a run queues the suspended runs that wait for it: the value of such an open step is the id of the awaited run. */
const awaitedRuns: string = `
CREATE INDEX run_journal_awaited ON run_journal (value) WHERE state = 'pending' AND kind = 'step';
CREATE TRIGGER runs_awaited AFTER UPDATE OF ended_at ON runs WHEN new.ended_at IS NOT NULL
BEGIN
  INSERT OR IGNORE INTO run_queue (run) SELECT run FROM run_journal JOIN runs ON id = run
    WHERE state = 'pending' AND kind = 'step' AND value = '"' || new.run_id || '"' AND status = 'waiting';
  UPDATE runs SET status = 'queued', wake_at = NULL WHERE status = 'waiting' AND id IN (SELECT run FROM run_journal
    WHERE state = 'pending' AND kind = 'step' AND value = '"' || new.run_id || '"');
END;
`;

/** Why a run waits although nothing is open: JSON of the problem of its code. */
const problemColumn: string = `
ALTER TABLE runs ADD COLUMN problem TEXT;
CREATE INDEX runs_held ON runs (id) WHERE problem IS NOT NULL;
`;

/** `next_at` is null if a schedule has no further occurrence; times are milliseconds since 1970. */
const scheduleTables: string = `
CREATE TABLE schedules (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  workflow TEXT NOT NULL,
  cron TEXT NOT NULL,
  timezone TEXT,
  next_at INTEGER,
  last_run_id TEXT,
  payload TEXT
) STRICT;
CREATE INDEX schedules_by_next ON schedules (next_at) WHERE next_at IS NOT NULL;
${noteBlobs("schedules", "id", ["payload"])}`;

/** How often the times of a schedule were repeated after the clock was set back: a part of each occurrence's name. */
const scheduleRounds = `
ALTER TABLE schedules ADD COLUMN round INTEGER NOT NULL DEFAULT 0;
`;

/** Outcomes of `once`, by key. A row without a value is the claim of a running worker. Times are ms since 1970. */
const outcomeTable: string = `
CREATE TABLE outcomes (
  outcome_key TEXT PRIMARY KEY,
  claim TEXT NOT NULL,
  claimed_until INTEGER NOT NULL,
  done_at INTEGER,
  value TEXT
) STRICT;
CREATE INDEX outcomes_by_age ON outcomes (coalesce(done_at, claimed_until));
${noteBlobs("outcomes", "outcome_key", ["value"])}`;

/**
 * The owner of each input and run (`owners.ts`), and the number of waiting ones per owner. The row without an owner counts
 * all waiting runs; `dispatch_load` counts all waiting inputs.
 */
const shareTables: string = `
ALTER TABLE dispatches ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN owner TEXT NOT NULL DEFAULT '';
UPDATE dispatches SET owner = 'instance/' || agent || '/' || instance_id WHERE status IN ('queued', 'running', 'failed');
UPDATE runs SET owner = 'workflow/' || workflow WHERE status IN ('queued', 'running', 'waiting');

CREATE TABLE dispatch_shares (owner TEXT PRIMARY KEY, waiting INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO dispatch_shares SELECT owner, count(*) FROM dispatches WHERE status = 'queued' GROUP BY owner;
CREATE TRIGGER dispatch_shares_added AFTER INSERT ON dispatches WHEN new.status = 'queued'
BEGIN ${countUp("dispatch_shares", "new.owner")} END;
CREATE TRIGGER dispatch_shares_queued AFTER UPDATE OF status ON dispatches
WHEN new.status = 'queued' AND old.status <> 'queued'
BEGIN ${countUp("dispatch_shares", "new.owner")} END;
CREATE TRIGGER dispatch_shares_left AFTER UPDATE OF status ON dispatches
WHEN new.status <> 'queued' AND old.status = 'queued'
BEGIN ${countDown("dispatch_shares", "old.owner")} END;
CREATE TRIGGER dispatch_shares_removed AFTER DELETE ON dispatches WHEN old.status = 'queued'
BEGIN ${countDown("dispatch_shares", "old.owner")} END;

CREATE TABLE run_shares (owner TEXT PRIMARY KEY, waiting INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO run_shares SELECT owner, count(*) FROM run_queue JOIN runs ON id = run GROUP BY owner;
INSERT INTO run_shares SELECT '', count(*) FROM run_queue;
CREATE TRIGGER run_shares_added AFTER INSERT ON run_queue
BEGIN
  ${countUp("run_shares", "(SELECT owner FROM runs WHERE id = new.run)")}
  UPDATE run_shares SET waiting = waiting + 1 WHERE owner = '';
END;
CREATE TRIGGER run_shares_removed AFTER DELETE ON run_queue
BEGIN
  ${countDown("run_shares", "(SELECT owner FROM runs WHERE id = old.run)")}
  UPDATE run_shares SET waiting = waiting - 1 WHERE owner = '';
END;
`;

/** One row, which the first lease holder writes. `time` and `kept_until` are times of the timeline, `wall` is the time of day. */
const timelineTable = `
CREATE TABLE timeline (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  time INTEGER NOT NULL,
  wall INTEGER NOT NULL,
  kept_until INTEGER NOT NULL DEFAULT 0
) STRICT;
`;

/** The trace and the cause of work (`toStoredTrace`). */
const traceColumns: string = `
ALTER TABLE dispatches ADD COLUMN trace TEXT;
ALTER TABLE runs ADD COLUMN trace TEXT;
`;

/** The id of the run that has started a run: cancelling the parent cancels its children. */
const parentColumn: string = `
ALTER TABLE runs ADD COLUMN parent TEXT;
CREATE INDEX runs_by_parent ON runs (parent) WHERE parent IS NOT NULL;
`;

/**
 * Records of webhook deliveries. Ids sort by time. Most deliveries are accepted, so the indices for the others exclude
 * these. A row without `delivery_id` was never verified.
 */
const deliveryTable: string = `
CREATE TABLE deliveries (
  record_id TEXT NOT NULL,
  webhook TEXT NOT NULL,
  outcome TEXT NOT NULL,
  delivery_id TEXT,
  record TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX deliveries_by_id ON deliveries (record_id);
CREATE INDEX deliveries_by_webhook ON deliveries (webhook, record_id);
CREATE INDEX deliveries_by_outcome ON deliveries (outcome, record_id) WHERE outcome <> 'accepted';
CREATE INDEX deliveries_by_sender ON deliveries (delivery_id, record_id) WHERE delivery_id IS NOT NULL;
CREATE INDEX deliveries_unverified ON deliveries (webhook, record_id) WHERE delivery_id IS NULL;
`;

/** `CountedAttempts`, and whether running work only waits. */
const countedAttempts: string = `
ALTER TABLE dispatches ADD COLUMN spent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE dispatches ADD COLUMN progress INTEGER NOT NULL DEFAULT 0;
ALTER TABLE dispatches ADD COLUMN idle INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN idle INTEGER NOT NULL DEFAULT 0;
UPDATE dispatches SET spent = attempts WHERE status IN ('queued', 'running');
`;

/**
 * Calls that wait for a decision. `work` is the dispatch or run that asks again after a crash; `fence` is the lease under
 * which the call was asked. `request` and `decision` are JSON.
 */
const waitingCallTable: string = `
CREATE TABLE waiting_calls (
  call_id TEXT PRIMARY KEY,
  kind TEXT NOT NULL DEFAULT 'approval',
  agent TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  session TEXT NOT NULL,
  operation_id TEXT NOT NULL,
  work TEXT,
  fence INTEGER NOT NULL,
  requested_at TEXT NOT NULL,
  request TEXT NOT NULL,
  args_hash TEXT NOT NULL,
  decision TEXT,
  written_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX waiting_calls_open ON waiting_calls (requested_at, call_id) WHERE decision IS NULL;
CREATE INDEX waiting_calls_by_age ON waiting_calls (written_at);
`;

/** Finds the sessions in which calls wait without reading the calls. */
const waitingSessionsIndex: string = `
CREATE INDEX waiting_calls_by_session ON waiting_calls (agent, instance_id, session, work, fence) WHERE decision IS NULL;
`;

/** `EntryHead.made_after`; null in the entries of earlier versions. */
const madeAfterColumn: string = `
ALTER TABLE run_journal ADD COLUMN made_after INTEGER;
`;

/** For lists of what waits: when an open wait began, in ms since 1970; null in the entries of earlier versions. For lists by time: an index. */
const listColumns: string = `
ALTER TABLE run_journal ADD COLUMN begun_at INTEGER;
CREATE INDEX runs_by_time ON runs (accepted_at);
CREATE INDEX dispatches_by_time ON dispatches (accepted_at);
`;

/**
 * The steps of the schema: a database with `user_version` n has the first n steps. A released step never changes; a new
 * step is added at the end.
 */
export const migrations: readonly string[] = [
  leaseTables + blobTables + dispatchTables + runTables + scheduleTables,
  openWaitsIndex,
  outcomeTable,
  shareTables,
  timelineTable + scheduleRounds,
  traceColumns,
  parentColumn,
  deliveryTable,
  waitingCallTable,
  awaitedRuns,
  countedAttempts,
  problemColumn,
  madeAfterColumn,
  progressTable,
  listColumns,
  waitingSessionsIndex,
];

const engineStore: StoreDefinition = {
  store: "The engine's store",
  applicationId: 0x6b697471, // "kitq"
  create: migrations.join(""),
  upgrades: migrations.slice(1),
  hint: "Update kit, or name another folder in `engine`.",
  makesFolder: true,
};

/** Opens or creates `engine.db` in a folder, or its tables in a database; in memory without either. Throws like `openStore`. */
export function openDatabase(where: string | Database | undefined): Database {
  const target = typeof where === "string" ? join(where, "engine.db") : where;
  return openStore(engineStore, target, (database) => {
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;");
    // From now on the commit queue waits for locks, without blocking the process.
    database.exec("PRAGMA busy_timeout = 0;");
  });
}

/** Opens `engine.db` of a folder read-only, also while another process uses it. Throws like `openStore`. */
export function openStoredDatabase(folder: string): Database {
  return openStoredFile(engineStore, join(folder, "engine.db"));
}

/**
 * SQL of the triggers that record which blobs the columns of a table use. Each row of the table is one user, identified
 * by `key`: an SQL expression over one row, such as `run_id`.
 */
function noteBlobs(table: string, key: string, columns: readonly string[]): string {
  return columns.map((column) => noteColumn(table, key, column)).join("");
}

function noteColumn(table: string, key: string, column: string): string {
  const user = (row: string): string =>
    `'${table}.${column}:' || ${key.replace(/[a-z_]+/g, (name) => `${row}.${name}`)}`;
  const add = `INSERT OR IGNORE INTO blob_uses VALUES (new.${column}, ${user("new")});`;
  const remove = `DELETE FROM blob_uses WHERE blob = old.${column} AND user = ${user("old")};`;
  return `
CREATE TRIGGER ${table}_${column}_blob_added AFTER INSERT ON ${table}
WHEN new.${column} GLOB 'blob:*' BEGIN ${add} END;
CREATE TRIGGER ${table}_${column}_blob_changed AFTER UPDATE OF ${column} ON ${table}
WHEN new.${column} IS NOT old.${column} AND (new.${column} GLOB 'blob:*' OR old.${column} GLOB 'blob:*')
BEGIN ${remove} INSERT OR IGNORE INTO blob_uses SELECT new.${column}, ${user("new")} WHERE new.${column} GLOB 'blob:*'; END;
CREATE TRIGGER ${table}_${column}_blob_removed AFTER DELETE ON ${table}
WHEN old.${column} GLOB 'blob:*' BEGIN ${remove} END;
`;
}

function countUp(table: string, owner: string): string {
  return `INSERT OR IGNORE INTO ${table} VALUES (${owner}, 0);
  UPDATE ${table} SET waiting = waiting + 1 WHERE owner = ${owner};`;
}

/** Deletes the row of an owner without waiting work, because there can be any number of owners. */
function countDown(table: string, owner: string): string {
  return `UPDATE ${table} SET waiting = waiting - 1 WHERE owner = ${owner};
  DELETE FROM ${table} WHERE owner = ${owner} AND waiting <= 0;`;
}
