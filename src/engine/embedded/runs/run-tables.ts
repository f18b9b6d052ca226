import { noteBlobs } from "../database/blob-tables.ts";

/**
 * The tables of runs. Times are milliseconds since 1970; payloads and results as the blobs stored them.
 *
 * `crashes` counts how often the process died under a run without another entry in its journal, which
 * had `crashed_at` entries then. `run_queue` names the runs with the status queued in the order in which
 * they became so; a number is never given again, so who has seen one can ask for what came after it.
 */
export const runTables: string = `
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

/** The waits that are open, however long the journal is that they stand in. */
export const openWaitsIndex: string = `
CREATE INDEX run_journal_open ON run_journal (run, position) WHERE state = 'pending';
`;
