import { setImmediate } from "node:timers/promises";
import { type Clock, elapsedOf } from "../../../base/clock.ts";
import { storeUnavailable } from "../../../protocol/error-code.ts";
import type { KitEvent } from "../../../protocol/event.ts";
import { isLost, leaseLost } from "../engine-base.ts";
import type { Asked, ClaimedRow, EventRows, StreamWrite, Stretch } from "./event-rows.ts";
import {
  copyEvent,
  crashGap,
  type LiveStream,
  newLiveStream,
  notAbove,
  noteDeltas,
  positionAfter,
  trim,
} from "./live-stream.ts";
import { joinDeltas, type OpenRun, toBatches } from "./stored-events.ts";

/** Buffered events per stream that force a write; up to twice as many are kept while writes fail. */
const manyEvents = crashGap / 2;
/** Buffered text over all streams, in UTF-16 units, that forces a write. */
const muchText = 1_000_000;
/** Buffered text above which `append` throws. */
const tooMuchText = 64_000_000;
/** The pause after a write that was refused to `append`. */
const restMs = 100;
/** Idle streams that stay in memory, so that their next event needs no claim. About 300 bytes each. */
const keptStreams = 5_000;

export interface WriterOptions {
  readonly rows: EventRows;
  readonly clock: Clock;
  /** Called when the first event after a write comes in. */
  onDirty(): void;
  /** Called when readers of a stream can find something new. */
  onChange(stream: string): void;
  /** Whether a reader follows a stream. */
  isRead(stream: string): boolean;
}

/** The streams that this process writes. */
export class EventWriter {
  readonly #options: WriterOptions;
  readonly #rows: EventRows;
  readonly #streams = new Map<string, LiveStream>();
  readonly #dirty = new Set<LiveStream>();
  readonly #touched = new Set<LiveStream>();
  /** The streams with written events in memory: those that a reader followed at their last write. */
  readonly #kept = new Set<LiveStream>();
  /** The streams of the next claim: those that begin in one turn of the event loop, and those that begin during a claim. */
  #beginning: { readonly asked: Asked[]; readonly claimed: Promise<void> } | undefined;
  #claimed: Promise<unknown> = Promise.resolve();
  #stretches: Stretch[] = [];
  #unwrittenLength = 0;
  #restUntil = 0;
  /** The write that runs now. */
  #turn: object | undefined;
  #written: Promise<void> = Promise.resolve();

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#rows = options.rows;
  }

  /** A stream whose writer is this process; its events in memory are newer than those in the rows. */
  live(stream: string): LiveStream | undefined {
    const live = this.#streams.get(stream);
    return live !== undefined && this.#isOwn(live) ? live : undefined;
  }

  /** A stream in memory, whether it is claimed or not. */
  find(stream: string): LiveStream | undefined {
    return this.#streams.get(stream);
  }

  /** Claims a stream, if this process may write it. */
  async begin(stream: string, isNew: boolean): Promise<void> {
    if (this.live(stream) !== undefined || this.#rows.refusal(stream) !== undefined) return;
    this.#beginning ??= this.#startClaim();
    this.#beginning.asked.push({ name: stream, isNew });
    await this.#beginning.claimed;
  }

  append(stream: string, event: KitEvent): void {
    const live = this.#open(stream);
    if (event.index <= live.last) throw notAbove(event.index, live.last);
    if (live.unwritten >= crashGap || this.#unwrittenLength > tooMuchText) throw this.#fullError();
    const { copy, length } = copyEvent(event);
    live.tail.push(copy);
    live.unwritten += 1;
    live.length += length;
    live.last = event.index;
    live.ended = false;
    this.#unwrittenLength += length;
    this.#touch(live);
    if (this.#unwrittenLength > muchText || live.unwritten >= manyEvents) this.#writeNow();
  }

  end(stream: string): void {
    const live = this.#open(stream);
    live.ended = true;
    this.#touch(live);
  }

  /** Writes all buffered events; one write at a time. If it rejects, they stay buffered. */
  async flush(): Promise<void> {
    while (this.#turn !== undefined) await this.#written;
    if (this.#dirty.size > 0) await this.#start();
  }

  /** Removes a stream from memory, and waits until no write contains its events. */
  async remove(stream: string): Promise<void> {
    const live = this.#streams.get(stream);
    if (live !== undefined) this.#drop(live);
    while (this.#turn !== undefined) await this.#written;
    // The answer of a claim on its way puts the stream into memory again, with the indexes that it had.
    await this.#beginning?.claimed.catch(() => undefined);
    await this.#claimed;
    const claimed = this.#streams.get(stream);
    if (claimed?.unwritten === 0) this.#drop(claimed);
  }

  /** Forgets the streams of shards that another process writes now. */
  forget(shards: ReadonlySet<number>): void {
    for (const live of [...this.#streams.values()]) {
      if (shards.has(this.#rows.shardOf(live.name))) this.#drop(live);
    }
  }

  /** Gives the streams of shards to their next writers, which continue at the last index. */
  async release(shards: ReadonlySet<number>): Promise<void> {
    while (this.#turn !== undefined) await this.#written;
    const open: string[] = [];
    const writers = new Set<string>();
    for (const live of this.#streams.values()) {
      if (live.writer === undefined || live.unwritten > 0) open.push(live.name);
      else if (shards.has(this.#rows.shardOf(live.name))) {
        writers.add(live.writer);
        live.writer = undefined;
      }
    }
    await this.#rows.release(shards, { writers, open });
  }

  /** Joins some of the deltas of finished turns; true if there are more. */
  async joinFinished(): Promise<boolean> {
    const due = this.#stretches;
    if (due.length === 0) return false;
    this.#stretches = [];
    let left: readonly Stretch[] = due;
    try {
      left = (await this.#rows.join?.(due)) ?? [];
    } finally {
      this.#stretches = [...left, ...this.#stretches];
    }
    return this.#stretches.length > 0;
  }

  /** Evicts the events of streams that were not used since the last call; true if a stream was used. */
  evictIdle(): boolean {
    const isIdle = (live: LiveStream): boolean => !this.#touched.has(live) && !this.#dirty.has(live);
    for (const live of this.#kept) {
      if (!isIdle(live)) continue;
      trim(live, this.#options.isRead(live.name) ? this.#rows.pace.keptEvents : 0);
      if (live.tail.length === 0) this.#kept.delete(live);
    }
    let excess = this.#streams.size - keptStreams;
    for (const live of this.#streams.values()) {
      if (excess <= 0) break;
      if (!isIdle(live) || this.#options.isRead(live.name) || live.open !== undefined) continue;
      this.#streams.delete(live.name);
      excess -= 1;
    }
    const wasTouched = this.#touched.size > 0 || this.#dirty.size > 0;
    this.#touched.clear();
    return wasTouched;
  }

  #isOwn({ writer }: LiveStream): boolean {
    return writer !== undefined && this.#rows.isWriter(writer);
  }

  /**
   * The stream for an append. It is claimed before its first index is used: if this process is killed, the next writer then
   * skips the indexes that it may have used. If the claim does not succeed at once, the first write repeats it, and readers get no event before.
   */
  #open(name: string): LiveStream {
    const refusal = this.#rows.refusal(name);
    if (refusal !== undefined) throw refusal;
    const known = this.#streams.get(name);
    if (known !== undefined && (known.unwritten > 0 || this.#isOwn(known))) return known;
    this.#unlessResting(() => this.#claim([{ name, isNew: true }]));
    const refused = this.#rows.refusal(name);
    if (refused !== undefined) throw refused;
    return this.#opened(name);
  }

  #opened(name: string): LiveStream {
    let live = this.#streams.get(name);
    if (live === undefined) {
      live = newLiveStream(name);
      this.#streams.set(name, live);
    }
    return live;
  }

  #startClaim(): { readonly asked: Asked[]; readonly claimed: Promise<void> } {
    const asked: Asked[] = [];
    const claimed = Promise.all([setImmediate(), this.#claimed]).then(async () => {
      this.#beginning = undefined;
      await this.#claim(asked.filter(({ name }) => this.live(name) === undefined));
    });
    this.#claimed = claimed.catch(() => undefined);
    return { asked, claimed };
  }

  async #claim(asked: readonly Asked[]): Promise<void> {
    if (asked.length === 0) return;
    const byName = new Map<string, Asked>();
    for (const one of asked) if (one.isNew || !byName.has(one.name)) byName.set(one.name, one);
    await this.#rows.claim([...byName.values()], (rows) => {
      this.#restUntil = 0;
      for (const row of rows) this.#noteClaim(row);
    });
  }

  #noteClaim({ name, id, writer, last, ended }: ClaimedRow): void {
    const live = this.#opened(name);
    if (this.#isOwn(live)) return;
    live.id = id;
    live.writer = writer;
    live.floor = last;
    live.last = Math.max(live.last, last);
    // Drops events that were appended before the claim with an index that was already used.
    live.tail = live.tail.slice(positionAfter(live.tail, last));
    live.unwritten = live.tail.length;
    if (live.unwritten === 0) {
      this.#unwrittenLength -= live.length;
      live.length = 0;
      if (!this.#dirty.has(live)) live.ended = ended;
    }
    this.#options.onChange(name);
  }

  /**
   * Starts work that can also be done later, by the next write. After a failure such work rests for a moment: otherwise each event
   * would wait for the program that locks the file.
   */
  #unlessResting(work: () => Promise<void>): void {
    const now = elapsedOf(this.#options.clock);
    if (now < this.#restUntil) return;
    this.#restUntil = now + restMs;
    work().catch(() => undefined);
  }

  #touch(live: LiveStream): void {
    if (this.#dirty.has(live)) return;
    this.#dirty.add(live);
    this.#touched.add(live);
    if (this.#dirty.size === 1) this.#options.onDirty();
  }

  #drop(live: LiveStream): void {
    this.#streams.delete(live.name);
    this.#dirty.delete(live);
    this.#touched.delete(live);
    this.#kept.delete(live);
    this.#unwrittenLength -= live.length;
    this.#options.onChange(live.name);
  }

  #writeNow(): void {
    if (this.#turn === undefined) this.#unlessResting(() => this.#start());
  }

  #start(): Promise<void> {
    const turn = {};
    this.#turn = turn;
    const over = (): void => {
      if (this.#turn === turn) this.#turn = undefined;
    };
    const done = this.#write(over).finally(over);
    this.#written = done.catch(() => undefined);
    return done;
  }

  async #write(over: () => void): Promise<void> {
    const unclaimed = this.#foreign().filter(({ name }) => this.#rows.refusal(name) === undefined);
    if (unclaimed.length > 0) await this.#claim(unclaimed.map(({ name }) => ({ name, isNew: true })));
    const due = [...this.#dirty].filter((live) => this.#isOwn(live)).map(toDue);
    try {
      if (due.length > 0) {
        await this.#rows.append(due, (names) => {
          this.#restUntil = 0;
          for (const one of due) this.#settle(one, names.has(one.name));
          over();
        });
      }
    } catch (error) {
      if (isLost(error)) for (const { live } of due) this.#drop(live);
      throw error;
    }
    const [left] = this.#foreign();
    if (left !== undefined) throw this.#rows.refusal(left.name) ?? leaseLost();
  }

  /** The streams with unwritten events whose writer this process is not. */
  #foreign(): readonly LiveStream[] {
    return [...this.#dirty].filter((live) => !this.#isOwn(live));
  }

  #settle({ live, events, length, open, ended, last }: Due, isOurs: boolean): void {
    if (this.#streams.get(live.name) !== live) return;
    // Another writer has taken the stream over: the unwritten events are lost.
    if (!isOurs) {
      this.#drop(live);
      return;
    }
    live.unwritten -= events.length;
    live.length -= length;
    this.#unwrittenLength -= length;
    if (live.unwritten === 0 && live.ended === ended && live.last === last) this.#dirty.delete(live);
    const stretch = this.#rows.join === undefined ? undefined : noteDeltas(live, events, open);
    if (stretch !== undefined) this.#stretches.push(stretch);
    const isRead = this.#options.isRead(live.name);
    trim(live, isRead ? Math.max(events.length, this.#rows.pace.keptEvents) : 0);
    if (live.tail.length > live.unwritten) this.#kept.add(live);
  }

  #fullError(): Error {
    return storeUnavailable({
      store: "The event log",
      reason: "too many events wait to be written",
      hint: this.#rows.hint,
    });
  }
}

/** The part of a write that belongs to a stream. */
interface Due extends StreamWrite {
  readonly live: LiveStream;
  readonly events: readonly KitEvent[];
  readonly length: number;
  readonly open: OpenRun | undefined;
}

function toDue(live: LiveStream): Due {
  const { name, id = 0, writer = "", last, ended, tail, unwritten, length } = live;
  const events = tail.slice(tail.length - unwritten);
  const joined = joinDeltas(events);
  const batches = toBatches(joined.events);
  return { live, name, id, writer, last, ended, batches, events, length, open: joined.open };
}
