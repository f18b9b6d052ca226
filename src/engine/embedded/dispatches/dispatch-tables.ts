import { noteBlobs } from "../database/blob-tables.ts";

/**
 * `seq` is the place in line: a redriven input gets a new one. Times are milliseconds since 1970. Most
 * rows are completed ones, so the indices that serve the others leave those out.
 */
export const dispatchTables: string = `
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
