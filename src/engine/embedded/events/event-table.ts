import { join } from "node:path";
import type { KitEvent } from "../../../protocol/event.ts";
import { incrementalVacuum, openStore, type StoreDefinition } from "../../../sqlite/open-store.ts";
import { progressTable } from "../../../sqlite/progress.ts";
import {
  createTransaction,
  type Database,
  pragma,
  query,
  type Statement,
  type Transaction,
} from "../../../sqlite/statements.ts";
import { type Batch, decodeEvents, eventAfter, type StoredEvent } from "../../shared/events/stored-events.ts";

export interface StreamRow {
  readonly id: number;
  /** The last generation that claimed the stream for writing. */
  readonly generation: number;
  readonly last: number;
  readonly ended: boolean;
  /** The number of events on disk. */
  readonly events: number;
}

/** A row of `batches`, decoded. */
export interface BatchRow {
  readonly id: number;
  readonly last: number;
  readonly events: readonly StoredEvent[];
}

/** The rows of `events.db`. Call writes inside `transaction`. */
export interface EventTable {
  readonly transaction: Transaction;
  /** Changes when another connection has committed. */
  dataVersion(): number;

  newestGeneration(): { readonly id: number; readonly fence: number } | undefined;
  addGeneration(fence: number): number;
  renewGeneration(id: number, fence: number): void;
  closeGeneration(id: number): void;
  wasClosed(generation: number): boolean;

  findStream(name: string): StreamRow | undefined;
  /** Returns the id of the new stream; `undefined` if a stream with that name exists. */
  addStream(name: string, generation: number): number | undefined;
  /** Moves a stream of an earlier generation to this one, with a new last index. */
  takeStream(id: number, generation: number, last: number): void;
  addBatches(id: number, batches: readonly Batch[], state: StreamState): void;
  countEvents(id: number): number;
  deleteStream(id: number): void;

  /** The events after an index in the next `batches` rows. */
  read(id: number, after: number, batches: number): readonly KitEvent[];
  /** The index of a stream's oldest event; `undefined` if none is on disk. */
  oldest(id: number): number | undefined;
  /** Up to `limit` rows with events from one index to another. */
  rows(id: number, range: { readonly from: number; readonly to: number }, limit: number): readonly BatchRow[];
  /** Replaces rows by at most as many batches with the same events. */
  replaceRows(id: number, rows: readonly BatchRow[], batches: readonly Batch[]): void;
  /** Deletes up to `batches` rows of a stream, the oldest first, and at most `excess` events. */
  deleteOldest(id: number, excess: number, batches: number): void;
  /** Deletes up to `batches` rows, of all streams, that were written before a time; true if there may be more. */
  deleteBefore(writtenMs: number, batches: number): boolean;
  /** Deletes up to `batches` rows of all streams, the oldest first, until they amount to `bytes`. */
  deleteBytes(bytes: number, batches: number): void;
  /** The size of the rows, without the free pages of the file. */
  usedBytes(): number;
  /** Shrinks the file by up to `pages` free pages; true if there may be more. Call it outside a transaction. */
  freePages(pages: number): boolean;
  /** Deletes up to `batches` rows of a deleted stream; true if there may be more. */
  deleteOrphans(id: number, batches: number): boolean;
}

interface StreamState {
  readonly last: number;
  readonly ended: boolean;
  readonly writtenMs: number;
}

export function createEventTable(database: Database): EventTable {
  const prepare = (sql: string): Statement => database.prepare(sql);
  const number = (statement: Statement, ...values: (number | string)[]): number | undefined => {
    const [value] = Object.values(statement.get(...values) ?? {});
    return value === undefined ? undefined : Number(value);
  };
  const sql = {
    dataVersion: prepare("PRAGMA data_version"),
    newestGeneration: prepare("SELECT id, fence FROM generations ORDER BY id DESC LIMIT 1"),
    addGeneration: prepare("INSERT INTO generations (fence) VALUES (?)"),
    renewGeneration: prepare("UPDATE generations SET fence = ? WHERE id = ?"),
    closeGeneration: prepare("UPDATE generations SET clean = 1 WHERE id = ?"),
    wasClosed: prepare("SELECT clean FROM generations WHERE id = ?"),
    findStream: prepare("SELECT id, generation, last, ended, events FROM streams WHERE name = ?"),
    addStream: prepare(
      "INSERT INTO streams (name, generation, last) VALUES (?, ?, 0) ON CONFLICT (name) DO NOTHING",
    ),
    takeStream: prepare("UPDATE streams SET generation = ?, last = ? WHERE id = ?"),
    addBatch: prepare(
      "INSERT INTO batches (stream_id, first, last, events, written_ms, data) VALUES (?, ?, ?, ?, ?, ?)",
    ),
    updateStream: prepare("UPDATE streams SET last = ?, ended = ?, events = events + ? WHERE id = ?"),
    countEvents: prepare("SELECT events FROM streams WHERE id = ?"),
    deleteStream: prepare("DELETE FROM streams WHERE id = ?"),
    read: prepare("SELECT data FROM batches WHERE stream_id = ? AND last > ? ORDER BY last LIMIT ?"),
    rows: prepare(
      "SELECT id, last, data FROM batches WHERE stream_id = ? AND last BETWEEN ? AND ? ORDER BY last LIMIT ?",
    ),
    replaceBatch: prepare("UPDATE batches SET first = ?, last = ?, events = ?, data = ? WHERE id = ?"),
    firstOfStream: prepare("SELECT first FROM batches WHERE stream_id = ? ORDER BY last LIMIT 1"),
    oldestOfStream: prepare("SELECT id, events FROM batches WHERE stream_id = ? ORDER BY last LIMIT ?"),
    oldest: prepare(
      "SELECT id, stream_id, events, written_ms, octet_length(data) AS bytes FROM batches ORDER BY id LIMIT ?",
    ),
    deleteBatch: prepare("DELETE FROM batches WHERE id = ?"),
    shrink: prepare("UPDATE streams SET events = events - ? WHERE id = ?"),
    deleteOrphans: prepare(
      "DELETE FROM batches WHERE id IN (SELECT id FROM batches WHERE stream_id = ? LIMIT ?)",
    ),
  };
  const size = database.isShared === true ? sharedSize(database) : fileSize(database);
  return {
    transaction: createTransaction(database),
    dataVersion: () => number(sql.dataVersion) ?? 0,
    newestGeneration() {
      const row = sql.newestGeneration.get();
      return row === undefined ? undefined : { id: Number(row.id), fence: Number(row.fence) };
    },
    addGeneration: (fence) => Number(sql.addGeneration.run(fence).lastInsertRowid),
    renewGeneration: (id, fence) => void sql.renewGeneration.run(fence, id),
    closeGeneration: (id) => void sql.closeGeneration.run(id),
    wasClosed: (generation) => number(sql.wasClosed, generation) === 1,
    findStream(name) {
      const row = sql.findStream.get(name);
      if (row === undefined) return undefined;
      const { id, generation, last, ended, events } = row;
      return {
        id: Number(id),
        generation: Number(generation),
        last: Number(last),
        ended: ended === 1,
        events: Number(events),
      };
    },
    addStream(name, generation) {
      const { changes, lastInsertRowid } = sql.addStream.run(name, generation);
      return Number(changes) === 0 ? undefined : Number(lastInsertRowid);
    },
    takeStream: (id, generation, last) => void sql.takeStream.run(generation, last, id),
    addBatches(id, batches, { last, ended, writtenMs }) {
      let added = 0;
      for (const batch of batches) {
        added += batch.events;
        sql.addBatch.run(id, batch.first, batch.last, batch.events, writtenMs, batch.data);
      }
      sql.updateStream.run(last, ended ? 1 : 0, added, id);
    },
    countEvents: (id) => number(sql.countEvents, id) ?? 0,
    deleteStream: (id) => void sql.deleteStream.run(id),
    read(id, after, batches) {
      const events: KitEvent[] = [];
      for (const row of sql.read.all(id, after, batches)) {
        for (const stored of decodeEvents(String(row.data))) {
          const event = eventAfter(stored, after);
          if (event !== undefined) events.push(event);
        }
      }
      return events;
    },
    oldest: (id) => number(sql.firstOfStream, id),
    rows: (id, { from, to }, limit) =>
      sql.rows.all(id, from, to, limit).map((row) => ({
        id: Number(row.id),
        last: Number(row.last),
        events: decodeEvents(String(row.data)),
      })),
    replaceRows(id, rows, batches) {
      let removed = 0;
      for (const [position, row] of rows.entries()) {
        const batch = batches[position];
        removed += row.events.length - (batch?.events ?? 0);
        if (batch === undefined) sql.deleteBatch.run(row.id);
        else sql.replaceBatch.run(batch.first, batch.last, batch.events, batch.data, row.id);
      }
      sql.shrink.run(removed, id);
    },
    deleteOldest(id, excess, batches) {
      let rest = excess;
      for (const row of sql.oldestOfStream.all(id, batches)) {
        const events = Number(row.events);
        if (events > rest) break;
        rest -= events;
        sql.deleteBatch.run(Number(row.id));
      }
      if (rest < excess) sql.shrink.run(excess - rest, id);
    },
    deleteBefore(writtenMs, batches) {
      const rows = sql.oldest.all(batches);
      for (const row of rows) {
        if (Number(row.written_ms) >= writtenMs) return false;
        sql.deleteBatch.run(Number(row.id));
        sql.shrink.run(Number(row.events), Number(row.stream_id));
      }
      return rows.length === batches;
    },
    deleteBytes(bytes, batches) {
      let left = bytes;
      for (const row of sql.oldest.all(batches)) {
        if (left <= 0) return;
        left -= Number(row.bytes);
        sql.deleteBatch.run(Number(row.id));
        sql.shrink.run(Number(row.events), Number(row.stream_id));
      }
    },
    ...size,
    deleteOrphans: (id, batches) => Number(sql.deleteOrphans.run(id, batches).changes) === batches,
  };
}

type Size = Pick<EventTable, "usedBytes" | "freePages">;

function fileSize(database: Database): Size {
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
function sharedSize(database: Database): Size {
  const read = query<{ readonly bytes: number }>(database, "SELECT bytes FROM event_bytes");
  return { usedBytes: () => read.get()?.bytes ?? 0, freePages: () => false };
}

/** A larger file is not rewritten: rewriting this many bytes takes some tenths of a second. */
const maxRewrittenBytes = 33_554_432;
const maxJournalBytes = 16_777_216;

/**
 * A process adds a generation when it begins to write. `events` counts the events of a stream on disk; `last` is its
 * highest index, which pruning does not change. The ids of batches ascend, so the oldest rows of all streams come first.
 */
const schema = `
CREATE TABLE generations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  fence INTEGER NOT NULL,
  clean INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE streams (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  generation INTEGER NOT NULL,
  last INTEGER NOT NULL,
  events INTEGER NOT NULL DEFAULT 0,
  ended INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE batches (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  stream_id INTEGER NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  events INTEGER NOT NULL,
  written_ms INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT;
CREATE INDEX batches_by_stream ON batches (stream_id, last);
`;

/** The ids of streams begin at the current time, so that those of a recreated file differ from those that readers know. */
const laterIds = "INSERT INTO sqlite_sequence (name, seq) VALUES ('streams', unixepoch());";

/** Counts the bytes of events in a database that also holds other tables. */
const countedBytes = `
CREATE TABLE event_bytes (bytes INTEGER NOT NULL) STRICT;
INSERT INTO event_bytes VALUES (0);
CREATE TRIGGER batches_added AFTER INSERT ON batches
BEGIN UPDATE event_bytes SET bytes = bytes + octet_length(new.data); END;
CREATE TRIGGER batches_changed AFTER UPDATE OF data ON batches
BEGIN UPDATE event_bytes SET bytes = bytes + octet_length(new.data) - octet_length(old.data); END;
CREATE TRIGGER batches_removed AFTER DELETE ON batches
BEGIN UPDATE event_bytes SET bytes = bytes - octet_length(old.data); END;
`;

const eventLog: StoreDefinition = {
  store: "The event log",
  applicationId: 0x6b697465, // "kite"
  create: schema + laterIds + progressTable,
  // Version 1 had the same tables; `decodeEvents` reads its rows of complete events.
  upgrades: ["", progressTable],
  hint: "Update kit, or name another folder in `engine`.",
  shrinks: true,
};

/** Opens or creates the event log of a folder, or its tables in a database; in memory without either. Throws like `openStore`. */
export function openEventsDatabase(where: string | Database | undefined): Database {
  const target = typeof where === "string" ? join(where, "events.db") : where;
  const shared = { ...eventLog, create: schema + countedBytes + progressTable };
  return openStore(typeof target === "object" ? shared : eventLog, target, (database) => {
    makeShrinkable(database);
    // Readers detect a lost tail by a gap in the indexes, so an fsync per flush has no benefit.
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;");
    database.exec(`PRAGMA journal_size_limit = ${maxJournalBytes}`);
    // From now on a wait for a lock would block the process, and the writer can retry later.
    database.exec("PRAGMA busy_timeout = 10");
  });
}

/**
 * Rewrites the file of an older kit, so that it can return free pages to the disk. A large file stays unchanged: its
 * readers must not wait, and SQLite reuses its free pages.
 */
function makeShrinkable(database: Database): void {
  if (database.isShared === true || pragma(database, "auto_vacuum") === incrementalVacuum) return;
  const pages = pragma(database, "page_count") - pragma(database, "freelist_count");
  if (pages * pragma(database, "page_size") > maxRewrittenBytes) return;
  try {
    database.exec(`PRAGMA busy_timeout = 0; PRAGMA auto_vacuum = ${incrementalVacuum}; VACUUM`);
  } catch {
    // Another process uses the file, or the disk has no room for a copy: the next start tries again.
  }
}
