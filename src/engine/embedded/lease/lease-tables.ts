/** One row: who works on this folder. The fence stays when the owner goes. */
export const leaseTables = `
CREATE TABLE lease (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  fence INTEGER NOT NULL,
  owner TEXT,
  pid INTEGER,
  birth TEXT,
  expires_at INTEGER NOT NULL
) STRICT;
INSERT INTO lease (id, fence, expires_at) VALUES (1, 0, 0);
`;
