import type { KitEvent } from "../../protocol/event.ts";
import type { EngineLimits } from "../shared/engine-base.ts";
import { crashGap, toGap } from "../shared/events/live-stream.ts";
import { type Batch, decodeEvents, eventAfter } from "../shared/events/stored-events.ts";
import type { PostgresBase } from "./postgres-base.ts";
import { shardOfStream } from "./shards.ts";

/** Rows that a reader gets at a time. */
const readRows = 8;
const pruneRows = 500;

export interface StreamRow {
  readonly id: number;
  readonly name: string;
  /** Null if all events that were given are written. */
  readonly writer: string | null;
  readonly last: number;
  readonly ended: boolean;
  readonly events: number;
}

/** The part of one statement that belongs to a stream. */
export interface StreamWrite {
  readonly name: string;
  readonly writer: string;
  readonly last: number;
  readonly ended: boolean;
  readonly batches: readonly Batch[];
}

export async function findStream({ database }: PostgresBase, name: string): Promise<StreamRow | undefined> {
  return await database.row<StreamRow>("SELECT * FROM $s.streams WHERE name = $1", [name]);
}

/** The next few rows of a stream after an index. */
export async function readEvents(
  { database }: PostgresBase,
  { id, name, last }: StreamRow,
  after: number,
): Promise<readonly KitEvent[]> {
  const rows = await database.rows<Batch>(
    `SELECT first, last, events, data FROM $s.batches WHERE stream_id = $1 AND last > $2 ORDER BY last LIMIT ${readRows}`,
    [id, after],
  );
  const [oldest] = rows;
  const events: KitEvent[] = [];
  for (const stored of rows.flatMap(({ data }) => decodeEvents(data))) {
    // After a write whose answer was lost, the next write contains its events again.
    const event = eventAfter(stored, events.at(-1)?.index ?? after);
    if (event !== undefined) events.push(event);
  }
  if (after <= 0 || oldest === undefined || oldest.first <= after + 1) return events;
  // A jump of the indexes after a crash is not a gap; only removed events are. Older rows exist only in the first case.
  const before = await database.row("SELECT 1 FROM $s.batches WHERE stream_id = $1 AND last <= $2 LIMIT 1", [
    id,
    after,
  ]);
  return before === undefined && last > after ? [toGap(name, after, oldest.first - 1), ...events] : events;
}

/** Writes events of several streams in one statement. Returns the names of the streams whose writer has not changed. */
export async function writeEvents(
  { database, clock }: PostgresBase,
  writes: readonly StreamWrite[],
): Promise<ReadonlySet<string>> {
  const batches = writes.flatMap((write) => write.batches.map((batch) => ({ name: write.name, batch })));
  const rows = await database.rows<Pick<StreamRow, "name">>(
    `WITH written AS (
       UPDATE $s.streams AS s SET last = greatest(s.last, new.last), ended = new.ended, events = s.events + new.events
       FROM unnest($1::text[], $2::text[], $3::bigint[], $4::boolean[], $5::int[]) AS new (writer, name, last, ended, events)
       WHERE s.name = new.name AND s.writer = new.writer RETURNING s.id, s.name
     ), added AS (
       INSERT INTO $s.batches (stream_id, first, last, events, written_ms, data)
       SELECT written.id, new.first, new.last, new.events, $11, new.data
       FROM unnest($6::text[], $7::bigint[], $8::bigint[], $9::int[], $10::text[])
         WITH ORDINALITY AS new (name, first, last, events, data, number)
       JOIN written USING (name) ORDER BY number
     )
     SELECT name FROM written`,
    [
      writes.map(({ writer }) => writer),
      writes.map(({ name }) => name),
      writes.map(({ last }) => last),
      writes.map(({ ended }) => ended),
      writes.map((write) => write.batches.reduce((sum, { events }) => sum + events, 0)),
      batches.map(({ name }) => name),
      batches.map(({ batch }) => batch.first),
      batches.map(({ batch }) => batch.last),
      batches.map(({ batch }) => batch.events),
      batches.map(({ batch }) => batch.data),
      clock.now(),
    ],
  );
  return new Set(rows.map(({ name }) => name));
}

/**
 * Makes this node the writer of streams, under the fences of their shards. If another writer has not released a stream,
 * its indexes continue after a gap. Returns the rows of the streams whose shards this node owns.
 */
export async function claimStreams(
  base: PostgresBase,
  asked: readonly { readonly name: string; readonly writer: string }[],
): Promise<readonly (StreamRow & { readonly writer: string })[]> {
  const shards = asked.map(({ name }) => shardOfStream(name) ?? -1);
  return await base.database.rows(
    `INSERT INTO $s.streams AS s (name, writer)
     SELECT name, writer FROM unnest($1::text[], $2::text[], $3::int[], $4::bigint[]) AS asked (writer, name, shard, fence)
     JOIN $s.shards USING (shard, fence)
     ON CONFLICT (name) DO UPDATE SET writer = excluded.writer,
       last = s.last + CASE WHEN s.writer IS NULL OR s.writer = excluded.writer THEN 0 ELSE ${crashGap} END
     RETURNING id, name, writer, last, ended, events`,
    [
      asked.map(({ writer }) => writer),
      asked.map(({ name }) => name),
      shards,
      shards.map((shard) => base.ownership.leaseOfShard(shard).fence),
    ],
  );
}

/** Releases the streams of writers: their next writers continue at the last index. `except` names those with unwritten events. */
export async function releaseStreams(
  { database }: PostgresBase,
  writers: readonly string[],
  except: readonly string[],
): Promise<void> {
  await database.run("UPDATE $s.streams SET writer = NULL WHERE writer = ANY($1) AND name <> ALL($2)", [
    writers,
    except,
  ]);
}

/** Deletes some rows that were written before a time; true if there may be more. */
export async function pruneEvents(base: PostgresBase, before: number): Promise<boolean> {
  return await deleteBatches(
    base,
    `SELECT id FROM $s.batches WHERE written_ms < $1 LIMIT ${pruneRows}`,
    before,
  );
}

/** Deletes some of the oldest rows of streams with too many events; true if there may be more. */
export async function pruneStreams(base: PostgresBase, { eventsPerStream }: EngineLimits): Promise<boolean> {
  return await deleteBatches(
    base,
    `SELECT id FROM (
       SELECT b.id, sum(b.events) OVER (PARTITION BY stream_id ORDER BY b.last DESC) - b.events AS newer
       FROM $s.batches AS b WHERE stream_id IN (SELECT id FROM $s.streams WHERE events > $1 LIMIT 20)
     ) AS sized WHERE newer >= $1 LIMIT ${pruneRows}`,
    eventsPerStream,
  );
}

/** Deletes some of the oldest rows if all events together are too large; true if there may be more. */
export async function pruneBytes(base: PostgresBase, { eventBytes }: EngineLimits): Promise<boolean> {
  // The size of the tables is cheap to read and includes deleted rows: if it is below the limit, nothing need be summed.
  const large = await base.database.row(
    "SELECT 1 WHERE pg_total_relation_size('$s.batches'::regclass) > $1",
    [eventBytes],
  );
  if (large === undefined) return false;
  return await deleteBatches(
    base,
    `SELECT id FROM (SELECT id, sum(octet_length(data)) OVER (ORDER BY id DESC) AS bytes FROM $s.batches) AS sized
     WHERE bytes > $1 ORDER BY id LIMIT ${pruneRows * 10}`,
    eventBytes,
  );
}

/** Deletes rows; true if there may be more. */
async function deleteBatches({ database }: PostgresBase, ids: string, limit: number): Promise<boolean> {
  const rows = await database.rows(
    `WITH old AS (
       DELETE FROM $s.batches WHERE id IN (${ids}) RETURNING stream_id, events
     ), fewer AS (
       UPDATE $s.streams SET events = streams.events - gone.events
       FROM (SELECT stream_id, sum(events) AS events FROM old GROUP BY stream_id) AS gone WHERE id = gone.stream_id
     )
     SELECT 1 FROM old`,
    [limit],
  );
  return rows.length >= pruneRows;
}
