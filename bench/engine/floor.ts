import { DatabaseSync } from "node:sqlite";

export interface Floor {
  /** Resolves once the row is on disk. */
  insert(id: number, data: string): Promise<void>;
  close(): void;
}

/** The floor, which no engine can beat: one table without an index, one transaction per turn of the event loop, and no other promise than durability. */
export function openFloor(file: string): Floor {
  const database = new DatabaseSync(file);
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;");
  database.exec("CREATE TABLE inputs (id INTEGER PRIMARY KEY, data TEXT NOT NULL) STRICT;");
  const insert = database.prepare("INSERT INTO inputs (id, data) VALUES (?, ?)");
  let pending: { id: number; data: string; resolve: () => void }[] = [];

  function flush(): void {
    const batch = pending;
    pending = [];
    database.exec("BEGIN IMMEDIATE");
    for (const { id, data } of batch) insert.run(id, data);
    database.exec("COMMIT");
    for (const { resolve } of batch) resolve();
  }

  return {
    insert: (id, data) =>
      new Promise((resolve) => {
        if (pending.length === 0) setImmediate(flush);
        pending.push({ id, data, resolve });
      }),
    close: () => database.close(),
  };
}
