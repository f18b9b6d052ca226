/**
 * Whose each input and run is (`owner.ts`), and how many of each owner wait. The row without an owner counts all runs
 * that wait; the inputs are counted by `dispatch_load`.
 */
export const shareTables: string = `
ALTER TABLE dispatches ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN owner TEXT NOT NULL DEFAULT '';
UPDATE dispatches SET owner = 'instance/' || agent || '/' || instance_id WHERE status IN ('queued', 'running', 'failed');
UPDATE runs SET owner = 'workflow/' || workflow WHERE status IN ('queued', 'running', 'waiting');

CREATE TABLE dispatch_shares (owner TEXT PRIMARY KEY, waiting INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO dispatch_shares SELECT owner, count(*) FROM dispatches WHERE status = 'queued' GROUP BY owner;
CREATE TRIGGER dispatch_shares_added AFTER INSERT ON dispatches WHEN new.status = 'queued'
BEGIN ${more("dispatch_shares", "new.owner")} END;
CREATE TRIGGER dispatch_shares_queued AFTER UPDATE OF status ON dispatches
WHEN new.status = 'queued' AND old.status <> 'queued'
BEGIN ${more("dispatch_shares", "new.owner")} END;
CREATE TRIGGER dispatch_shares_left AFTER UPDATE OF status ON dispatches
WHEN new.status <> 'queued' AND old.status = 'queued'
BEGIN ${less("dispatch_shares", "old.owner")} END;
CREATE TRIGGER dispatch_shares_removed AFTER DELETE ON dispatches WHEN old.status = 'queued'
BEGIN ${less("dispatch_shares", "old.owner")} END;

CREATE TABLE run_shares (owner TEXT PRIMARY KEY, waiting INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO run_shares SELECT owner, count(*) FROM run_queue JOIN runs ON id = run GROUP BY owner;
INSERT INTO run_shares SELECT '', count(*) FROM run_queue;
CREATE TRIGGER run_shares_added AFTER INSERT ON run_queue
BEGIN
  ${more("run_shares", "(SELECT owner FROM runs WHERE id = new.run)")}
  UPDATE run_shares SET waiting = waiting + 1 WHERE owner = '';
END;
CREATE TRIGGER run_shares_removed AFTER DELETE ON run_queue
BEGIN
  ${less("run_shares", "(SELECT owner FROM runs WHERE id = old.run)")}
  UPDATE run_shares SET waiting = waiting - 1 WHERE owner = '';
END;
`;

function more(table: string, owner: string): string {
  return `INSERT OR IGNORE INTO ${table} VALUES (${owner}, 0);
  UPDATE ${table} SET waiting = waiting + 1 WHERE owner = ${owner};`;
}

/** An owner of whom nothing waits has no row: they may be any number. */
function less(table: string, owner: string): string {
  return `UPDATE ${table} SET waiting = waiting - 1 WHERE owner = ${owner};
  DELETE FROM ${table} WHERE owner = ${owner} AND waiting <= 0;`;
}
