import { incrementalVacuum } from "../../../sqlite/open-store.ts";
import { type Database, pragma, query } from "../../../sqlite/statements.ts";
import type { Batch } from "../../shared/events/stored-events.ts";

/** A row of `streams`. */
export interface Row {
  readonly id: number;
  /** The last generation that claimed the stream for writing. */
  readonly generation: number;
  readonly last: number;
  readonly ended: number;
  readonly events: number;
}

/** A row of `batches` that can be removed. */
export interface OldRow {
  readonly id: number;
  readonly stream_id: number;
  readonly events: number;
  readonly written_ms: number;
  readonly bytes: number;
}

export type Statements = ReturnType<typeof statements>;

export function statements(database: Database) {
  const prepare = <Row = never>(sql: string) => query<Row>(database, sql);
  return {
    dataVersion: prepare<{ readonly data_version: number }>("PRAGMA data_version"),
    newestGeneration: prepare<{ readonly id: number; readonly fence: number }>(
      "SELECT id, fence FROM generations ORDER BY id DESC LIMIT 1",
    ),
    addGeneration: database.prepare("INSERT INTO generations (fence) VALUES (?)"),
    renewGeneration: prepare("UPDATE generations SET fence = ? WHERE id = ?"),
    closeGeneration: prepare("UPDATE generations SET clean = 1 WHERE id = ?"),
    wasClosed: prepare<{ readonly clean: number }>("SELECT clean FROM generations WHERE id = ?"),
    find: prepare<Row>("SELECT id, generation, last, ended, events FROM streams WHERE name = ?"),
    add: database.prepare(
      "INSERT INTO streams (name, generation, last) VALUES (?, ?, 0) ON CONFLICT (name) DO NOTHING",
    ),
    take: prepare("UPDATE streams SET generation = ?, last = ? WHERE id = ?"),
    addBatch: prepare(
      "INSERT INTO batches (stream_id, first, last, events, written_ms, data) VALUES (?, ?, ?, ?, ?, ?)",
    ),
    update: prepare("UPDATE streams SET last = ?, ended = ?, events = events + ? WHERE id = ?"),
    count: prepare<{ readonly events: number }>("SELECT events FROM streams WHERE id = ?"),
    deleteStream: prepare("DELETE FROM streams WHERE id = ?"),
    read: prepare<Pick<Batch, "first" | "data">>(
      "SELECT first, data FROM batches WHERE stream_id = ? AND last > ? ORDER BY last LIMIT ?",
    ),
    rows: prepare<{ readonly id: number; readonly last: number; readonly data: string }>(
      "SELECT id, last, data FROM batches WHERE stream_id = ? AND last BETWEEN ? AND ? ORDER BY last LIMIT ?",
    ),
    replaceBatch: prepare("UPDATE batches SET first = ?, last = ?, events = ?, data = ? WHERE id = ?"),
    firstOf: prepare<{ readonly first: number }>(
      "SELECT first FROM batches WHERE stream_id = ? ORDER BY last LIMIT 1",
    ),
    oldestOf: prepare<Pick<OldRow, "id" | "events">>(
      "SELECT id, events FROM batches WHERE stream_id = ? ORDER BY last LIMIT ?",
    ),
    oldest: prepare<OldRow>(
      "SELECT id, stream_id, events, written_ms, octet_length(data) AS bytes FROM batches ORDER BY id LIMIT ?",
    ),
    deleteBatch: prepare("DELETE FROM batches WHERE id = ?"),
    shrink: prepare("UPDATE streams SET events = events - ? WHERE id = ?"),
    deleteOrphans: prepare(
      "DELETE FROM batches WHERE id IN (SELECT id FROM batches WHERE stream_id = ? LIMIT ?)",
    ),
  };
}

export interface Size {
  /** The size of the rows, without the free pages of the file. */
  usedBytes(): number;
  /** Shrinks the file by up to `pages` free pages; true if there may be more. Call it outside a transaction. */
  freePages(pages: number): boolean;
}

export function fileSize(database: Database): Size {
  const canShrink = pragma(database, "auto_vacuum") === incrementalVacuum;
  const pageSize = pragma(database, "page_size");
  const [all, free] = ["page_count", "freelist_count"].map((name) =>
    query<Readonly<Record<string, number>>>(database, `SELECT ${name} AS pages FROM pragma_${name}`),
  );
  const count = (pages: typeof all): number => pages?.get()?.pages ?? 0;
  return {
    usedBytes: () => (count(all) - count(free)) * pageSize,
    freePages(pages) {
      const unused = canShrink ? count(free) : 0;
      if (unused === 0) return false;
      database.exec(`PRAGMA incremental_vacuum(${pages})`);
      return unused > pages;
    },
  };
}

/** Triggers count the bytes of the rows, because other stores have their tables in the same file. */
export function sharedSize(database: Database): Size {
  const read = query<{ readonly bytes: number }>(database, "SELECT bytes FROM event_bytes");
  return { usedBytes: () => read.get()?.bytes ?? 0, freePages: () => false };
}
