import type { KitError } from "../../base/kit-error.ts";
import { leaseLost } from "../shared/engine-base.ts";
import type {
  Asked,
  ClaimedRow,
  EventLimits,
  EventRows,
  Released,
  StreamRow,
  StreamWrite,
} from "../shared/events/event-rows.ts";
import { crashGap } from "../shared/events/live-stream.ts";
import type { Batch } from "../shared/events/stored-events.ts";
import { databaseNow } from "./engine-database.ts";
import type { PostgresBase } from "./postgres-base.ts";
import { quick } from "./quick-commit.ts";
import { shardOfStream } from "./shards.ts";

const pruneRows = 500;

/** A row of `streams`. */
interface Row extends Omit<StreamRow, "highest"> {
  readonly name: string;
  /** Null if all events that were given are written. */
  readonly writer: string | null;
}

/**
 * A number that no stream had before, also after a crash of the database that has lost the last values of the sequence: it begins with
 * the time in ms.
 */
const newStreamId = `${databaseNow} * 1024 + nextval(pg_get_serial_sequence('$s.streams', 'id')) % 1024`;

/**
 * The rows of events in Postgres. The owner of an instance or a run writes its stream, and tells the other nodes about each write. A node
 * that loses its lease drops its unwritten events, so it is another writer of a shard's streams under each fence; so is a node that has lost
 * its connection, because a crash of the database can have lost its last events.
 */
export class PostgresEventRows implements EventRows {
  // Each call crosses the network, and readers on other nodes wait for writes.
  readonly pace = { gatherMs: 25, retryMs: 500, readerRows: 8, keptEvents: 1_000, removeMs: undefined };
  readonly hint = "Postgres does not accept them, or not fast enough. Check the database and the network.";
  readonly pollMs = 250;
  readonly #base: PostgresBase;
  /** Claims wait for a release that has begun: it would end the claim. */
  #releasing: Promise<void> = Promise.resolve();
  /** How often the streams of a shard were released: a release that Postgres executes late does not end a later claim. */
  readonly #releases = new Map<number, number>();

  constructor(base: PostgresBase) {
    this.#base = base;
  }

  hasChanged(): boolean {
    return true;
  }

  close(): void {
    // The engine closes its database.
  }

  shardOf(stream: string): number {
    return shardOfStream(stream) ?? -1;
  }

  refusal(stream: string): KitError | undefined {
    const { signal } = this.#base.ownership.leaseOfShard(this.shardOf(stream));
    return signal.aborted ? leaseLost(signal.reason) : undefined;
  }

  /** The log forgets the streams of lost shards; a write checks the writer. */
  isWriter(): boolean {
    return true;
  }

  /**
   * Makes this node the writer of streams, under the fences of their shards. If another writer has not released a stream,
   * its indexes continue after a gap. The commit waits for the disk if it changes the writer of a stream, whose readers know
   * indexes of it. A lost row of a new stream gets another id.
   */
  async claim(asked: readonly Asked[], claimed: (rows: readonly ClaimedRow[]) => void): Promise<void> {
    await this.#releasing;
    const { database, ownership } = this.#base;
    const shards = asked.map(({ name }) => this.shardOf(name));
    const rows = await database.rows<Row & { readonly writer: string }>(
      `WITH claimed AS (
         INSERT INTO $s.streams AS s (id, name, writer) OVERRIDING SYSTEM VALUE
         SELECT ${newStreamId}, name, writer
         FROM unnest($1::text[], $2::text[], $3::int[], $4::bigint[], $5::boolean[]) AS asked (writer, name, shard, fence, is_new)
         JOIN $s.shards USING (shard, fence)
         WHERE is_new OR EXISTS (SELECT 1 FROM $s.streams WHERE streams.name = asked.name) ORDER BY name
         ON CONFLICT (name) DO UPDATE SET writer = excluded.writer,
           last = s.last + CASE WHEN s.writer IS NULL OR s.writer = excluded.writer THEN 0 ELSE ${crashGap} END
         RETURNING id, name, writer, last, ended, events, s.xmax::text <> '0' AS is_known
       ), quick AS MATERIALIZED (
         SELECT CASE WHEN NOT bool_or(is_known) THEN set_config('synchronous_commit', 'off', true) END FROM claimed
       )
       SELECT id, name, writer, last, ended, events FROM claimed, quick`,
      [
        shards.map((shard) => this.#writerOf(shard)),
        asked.map(({ name }) => name),
        shards,
        shards.map((shard) => ownership.leaseOfShard(shard).fence),
        asked.map(({ isNew }) => isNew),
      ],
    );
    claimed(rows);
  }

  /** A crash of the database can lose the last events, as the crash of a node does. */
  async append(writes: readonly StreamWrite[], written: (names: ReadonlySet<string>) => void): Promise<void> {
    const { database, clock, news } = this.#base;
    const batches = writes.flatMap((write) => write.batches.map((batch) => ({ name: write.name, batch })));
    const rows = await database.rows<Pick<Row, "name">>(
      `WITH ${quick}, written AS (
         UPDATE $s.streams AS s SET last = greatest(s.last, new.last), ended = new.ended, events = s.events + new.events
         FROM unnest($1::text[], $2::text[], $3::bigint[], $4::boolean[], $5::int[]) AS new (writer, name, last, ended, events), quick
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
    written(new Set(rows.map(({ name }) => name)));
    for (const { name } of rows) news.publish(["stream", name]);
  }

  async release(shards: ReadonlySet<number>, { writers, open }: Released): Promise<void> {
    // Streams that are no longer in memory have the writer of their shard, too.
    const all = new Set([...writers, ...[...shards].map((shard) => this.#writerOf(shard))]);
    for (const shard of shards) this.#releases.set(shard, (this.#releases.get(shard) ?? 0) + 1);
    const releasing = this.#base.database.run(
      "UPDATE $s.streams SET writer = NULL WHERE writer = ANY($1) AND name <> ALL($2)",
      [[...all], open],
    );
    this.#releasing = releasing.then(
      () => undefined,
      () => undefined,
    );
    await releasing;
  }

  async find(streams: readonly string[]): Promise<ReadonlyMap<string, StreamRow>> {
    const rows = await this.#base.database.rows<Row>("SELECT * FROM $s.streams WHERE name = ANY($1)", [
      streams,
    ]);
    return new Map(
      rows.map((row) => {
        const isExact = row.writer === null || row.writer === this.#writerOf(this.shardOf(row.name));
        return [row.name, { ...row, highest: row.last + (isExact ? 0 : crashGap) }];
      }),
    );
  }

  async read(id: number, after: number, rows: number): Promise<readonly Pick<Batch, "first" | "data">[]> {
    return await this.#base.database.rows(
      "SELECT first, data FROM $s.batches WHERE stream_id = $1 AND last > $2 ORDER BY last LIMIT $3",
      [id, after, rows],
    );
  }

  async oldest(id: number): Promise<number | undefined> {
    const row = await this.#base.database.row<Pick<Batch, "first">>(
      "SELECT first FROM $s.batches WHERE stream_id = $1 ORDER BY last LIMIT 1",
      [id],
    );
    return row?.first;
  }

  async delete(stream: string): Promise<void> {
    await this.#base.database.run(
      `WITH gone AS (DELETE FROM $s.streams WHERE name = $1 RETURNING id)
       DELETE FROM $s.batches WHERE stream_id IN (SELECT id FROM gone)`,
      [stream],
    );
    this.#base.news.publish(["stream", stream]);
  }

  async remove({ beforeMs, maxEvents, maxBytes }: EventLimits): Promise<boolean> {
    return (
      (await this.#removeBatches(
        `SELECT id FROM $s.batches WHERE written_ms < $1 LIMIT ${pruneRows}`,
        beforeMs,
      )) ||
      (await this.#removeBatches(
        `SELECT id FROM (
           SELECT b.id, sum(b.events) OVER (PARTITION BY stream_id ORDER BY b.last DESC) - b.events AS newer
           FROM $s.batches AS b WHERE stream_id IN (SELECT id FROM $s.streams WHERE events > $1 LIMIT 20)
         ) AS sized WHERE newer >= $1 LIMIT ${pruneRows}`,
        maxEvents,
      )) ||
      (await this.#removeBytes(maxBytes))
    );
  }

  async #removeBytes(maxBytes: number): Promise<boolean> {
    // The size of the tables is cheap to read and includes deleted rows: if it is below the limit, nothing need be summed.
    const large = await this.#base.database.row(
      "SELECT 1 WHERE pg_total_relation_size('$s.batches'::regclass) > $1",
      [maxBytes],
    );
    if (large === undefined) return false;
    return await this.#removeBatches(
      `SELECT id FROM (SELECT id, sum(octet_length(data)) OVER (ORDER BY id DESC) AS bytes FROM $s.batches) AS sized
       WHERE bytes > $1 ORDER BY id LIMIT ${pruneRows * 10}`,
      maxBytes,
    );
  }

  /** Deletes rows; true if there may be more. */
  async #removeBatches(ids: string, limit: number): Promise<boolean> {
    const rows = await this.#base.database.rows(
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

  #writerOf(shard: number): string {
    const { ownership } = this.#base;
    const { fence } = ownership.leaseOfShard(shard);
    return [ownership.node, shard, fence, this.#releases.get(shard) ?? 0, ownership.losses].join("/");
  }
}
