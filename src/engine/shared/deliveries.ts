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
  /** Writes rows, one per id. A row that has ended replaces the one with its id; an open row replaces none. */
  write(rows: readonly DeliveryRow[]): Promise<void>;
  list(filter: DeliveryQuery): Promise<Page<Delivery>>;
}

/** The most records that wait to be written; the oldest go first. */
const mostWaiting = 1_000;
/** Records that any stranger can cause share a write. */
const unverifiedMs = 250;
/** Between two attempts to write to a store that is away. */
const awayMs = 2_000;
const awayCodes: ReadonlySet<string> = new Set(["store_unavailable", "unavailable"]);

/** Writes records of deliveries in the background of what they are about. */
export class Deliveries implements DeliveryRecords {
  readonly #base: EngineBase;
  readonly #store: DeliveryStore;
  readonly #waiting = new Map<string, Delivery>();
  readonly #writes = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  /** Whether the last write has failed: then the next one is made after a pause. */
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

  /** Writes what waits, once. */
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

  /** Another error than that of a store which is away would come again with the same records: they are given up. */
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
      if (this.#waiting.size <= mostWaiting) break;
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

/** Senders choose some of the texts: a column holds no text that a database refuses. */
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

/** The filter as the columns have it. */
export function columnsOf({ webhook, delivery_id, outcome }: DeliveryQuery): readonly [string, string][] {
  const given = Object.entries({ delivery_id, webhook, outcome });
  return given.flatMap(([name, value]) => (value === undefined ? [] : [[name, toColumn(value)]]));
}

/** How a page is made of rows. */
export const deliveryPage: Omit<
  PageSource<Pick<DeliveryRow, "record_id" | "record">, Delivery>,
  "rows" | "limit"
> = {
  size: ({ record }) => record.length,
  toItem: ({ record }) => parseStored(record) as Delivery,
  toCursor: ({ record_id }) => record_id,
};

/** Whether a cursor of a list is one: lists go newest first by ids, which sort by time. */
export function isDeliveryId(text: string): boolean {
  return /^delivery_[0-9A-HJKMNP-TV-Z]{26}$/.test(text);
}
