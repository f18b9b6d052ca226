/** Which blobs are in use, kept by triggers: a file that no row names any more can go. */
export const blobTables = `
CREATE TABLE blob_uses (
  blob TEXT NOT NULL,
  user TEXT NOT NULL,
  PRIMARY KEY (blob, user)
) STRICT, WITHOUT ROWID;
`;

/**
 * Triggers that note the blobs which columns of a table refer to, for its migration. Each row of the
 * table is a user by itself, known by `key`: an SQL expression over one row, such as `run_id`.
 */
export function noteBlobs(table: string, key: string, columns: readonly string[]): string {
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
