import { type Database, query } from "./statements.ts";

/**
 * The table with which two databases watch each other: each counts its own work, and notes how much of the other's it has
 * seen on disk. The databases are named by their path relative to the folder of the other one. Released steps of several
 * stores contain this text, so it never changes. Several stores can be in one database.
 */
export const progressTable: string = `
CREATE TABLE IF NOT EXISTS progress (
  other TEXT PRIMARY KEY,
  count INTEGER NOT NULL,
  seen INTEGER NOT NULL,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`;

export interface Progress {
  /** How often work of this database was counted. */
  readonly count: number;
  /** The highest `count` that the other database is known to have committed. */
  readonly seen: number;
  /** The time of the last change of the row, in ms since 1970. What was committed before the row is in the file, if the row is. */
  readonly at: number;
}

/** The row about one other database. */
export interface ProgressRow {
  read(): Progress | undefined;
  /** Adds to the count, and replaces `seen` unless it is `undefined`. Returns the new count. */
  write(change: { readonly add: 0 | 1; readonly seen: number | undefined; readonly at: number }): number;
}

export function createProgressRow(database: Database, other: string): ProgressRow {
  const read = query<Progress>(database, "SELECT count, seen, at FROM progress WHERE other = ?");
  const write = query(
    database,
    `INSERT INTO progress (other, count, seen, at) VALUES (?1, ?2, coalesce(?3, 0), ?4)
     ON CONFLICT (other) DO UPDATE SET count = count + ?2, seen = coalesce(?3, seen), at = ?4`,
  );
  return {
    read: () => read.get(other),
    write({ add, seen, at }) {
      // Reads the count in a second statement: with RETURNING, the first row comes before the commit, which can fail.
      write.run(other, add, seen ?? null, at);
      return read.get(other)?.count ?? 0;
    },
  };
}
