/**
 * One row: who works on this folder. The fence stays when the owner goes. `locked`: the owner holds the
 * lock of `engine.lock` as well, so whoever gets that knows that the owner is gone.
 */
export const leaseTables = `
CREATE TABLE lease (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  fence INTEGER NOT NULL,
  owner TEXT,
  locked INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
INSERT INTO lease (id, fence, locked, expires_at) VALUES (1, 0, 0, 0);
`;
