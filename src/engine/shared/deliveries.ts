import { KitError } from "../../base/kit-error.ts";
import type { Delivery, DeliveryOutcome, DeliveryQuery } from "../../protocol/dispatch.ts";
import type { DeliveryRecords, Page } from "../contract.ts";
import type { EngineBase } from "./engine-base.ts";
import { type PageSource, parseStored } from "./stored-rows.ts";

/** A row of `deliveries`. */
export interface DeliveryRow {
  readonly record_id: string;
  readonly webhook: string;
  readonly outcome: DeliveryOutcome;
  /** Null for a delivery that was not verified. */
  readonly delivery_id: string | null;
  /** The record, JSON. */
  readonly record: string;
}

/** The rows of deliveries. */
export interface DeliveryStore {
  /** Writes rows, at most one per id. An ended row replaces the row with its id; an open row never does. */
  write(rows: readonly DeliveryRow[]): Promise<void>;
  list(filter: DeliveryQuery): Promise<Page<Delivery>>;
}

/** Records that wait to be written; beyond this number the oldest are dropped. */
const maxWaiting = 1_000;
/** Pause before a write of unverified records, which anyone can cause: they share one write. */
const unverifiedMs = 250;
/** Pause between two writes to a store that is unavailable. */
const awayMs = 2_000;
const awayCodes: ReadonlySet<string> = new Set(["store_unavailable", "unavailable"]);

/** Writes records of deliveries in the background, while the deliveries are processed. */
export class Deliveries implements DeliveryRecords {
  readonly #base: EngineBase;
  readonly #store: DeliveryStore;
  readonly #waiting = new Map<string, Delivery>();
  readonly #writes = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  /** Whether the last write has failed: then the next write comes after a pause. */
  #isAway = false;
  #hasTimer = false;

  constructor(base: EngineBase, store: DeliveryStore) {
    this.#base = base;
    this.#store = store;
  }

  record(delivery: Delivery): Promise<void> {
    this.#add([delivery]);
    if (this.#closing.signal.aborted || (delivery.delivery_id !== undefined && !this.#isAway))
      return this.#write();
    this.#writeLater();
    return Promise.resolve();
  }

  async list(filter: DeliveryQuery = {}): Promise<Page<Delivery>> {
    void this.#write();
    await Promise.all(this.#writes);
    return await this.#store.list(filter);
  }

  /** Tries once to write the waiting records. */
  async close(): Promise<void> {
    this.#closing.abort();
    void this.#write();
    await Promise.all(this.#writes);
  }

  #write(): Promise<void> {
    const all = [...this.#waiting.values()];
    if (all.length === 0) return Promise.resolve();
    this.#waiting.clear();
    const write = this.#store
      .write(all.map(toRow))
      .then(
        () => {
          this.#isAway = false;
        },
        (error: unknown) => this.#putBack(all, error),
      )
      .finally(() => this.#writes.delete(write));
    this.#writes.add(write);
    return write;
  }

  /** Keeps the records if the store is unavailable. Any other error would come again with the same records, so they are dropped. */
  #putBack(all: readonly Delivery[], error: unknown): void {
    if (!(error instanceof KitError) || !awayCodes.has(error.code)) return;
    this.#isAway = true;
    const newer = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#add([...all, ...newer]);
    this.#writeLater();
  }

  #add(all: readonly Delivery[]): void {
    for (const delivery of all) this.#waiting.set(delivery.record_id, delivery);
    for (const oldest of this.#waiting.keys()) {
      if (this.#waiting.size <= maxWaiting) break;
      this.#waiting.delete(oldest);
    }
  }

  #writeLater(): void {
    if (this.#hasTimer || this.#closing.signal.aborted) return;
    this.#hasTimer = true;
    this.#base.time.sleep(this.#isAway ? awayMs : unverifiedMs, this.#closing.signal).then(
      () => {
        this.#hasTimer = false;
        void this.#write();
      },
      () => undefined,
    );
  }
}

/** Senders choose some of the texts, so characters that a database refuses are replaced. */
function toRow(delivery: Delivery): DeliveryRow {
  const { record_id, webhook, outcome, delivery_id } = delivery;
  return {
    record_id,
    webhook: toColumn(webhook),
    outcome,
    delivery_id: delivery_id === undefined ? null : toColumn(delivery_id),
    record: JSON.stringify(delivery),
  };
}

function toColumn(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\uFFFD");
}

/** The set fields of a filter, as names and values of columns. */
export function columnsOf({ webhook, delivery_id, outcome }: DeliveryQuery): readonly [string, string][] {
  const fields = Object.entries({ delivery_id, webhook, outcome });
  return fields.flatMap(([name, value]) => (value === undefined ? [] : [[name, toColumn(value)]]));
}

/** The functions that make a page of deliveries from rows. */
export const deliveryPage: Omit<
  PageSource<Pick<DeliveryRow, "record_id" | "record">, Delivery>,
  "rows" | "limit"
> = {
  size: ({ record }) => record.length,
  toItem: ({ record }) => parseStored(record) as Delivery,
  toCursor: ({ record_id }) => record_id,
};

/** Whether a text can be a cursor of a list: cursors are ids, which sort by time. */
export function isDeliveryId(text: string): boolean {
  return /^delivery_[0-9A-HJKMNP-TV-Z]{26}$/.test(text);
}
