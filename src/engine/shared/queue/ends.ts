import { onAbort } from "../../../base/abort.ts";
import { isStoreUnavailable } from "../../../protocol/error-code.ts";

/** The pause between two reads while the store is unavailable. */
const retryMs = 250;

/** The rows of work of one kind. */
export interface EndedRows<Row> {
  find(id: string): Promise<Row | undefined>;
  hasEnded(row: Row): boolean;
  /** The ids of those that have not ended. */
  openAmong(ids: readonly string[]): Promise<readonly string[]>;
}

/** Callers that wait for the end of work, by the id of the work. */
export class Ends<Row> {
  readonly #rows: EndedRows<Row>;
  readonly #waiting = new Map<string, Set<PromiseWithResolvers<void>>>();

  constructor(rows: EndedRows<Row>) {
    this.#rows = rows;
  }

  /** Returns the row of ended work; `undefined` for an unknown id. Once the work was found, an outage of the store does not end the wait. */
  async wait(id: string, signal: AbortSignal | undefined): Promise<Row | undefined> {
    signal?.throwIfAborted();
    for (let isKnown = false; ; ) {
      // The wait begins before the row is read, so that an end in between is not missed.
      const end = Promise.withResolvers<void>();
      end.promise.catch(() => undefined);
      const group = this.#waiting.get(id) ?? new Set();
      this.#waiting.set(id, group.add(end));
      const forget = onAbort(signal, end.reject);
      try {
        const row = await this.#rows.find(id);
        if (row === undefined || this.#rows.hasEnded(row)) return row;
        isKnown = true;
        await end.promise;
      } catch (error) {
        if (!isKnown || !isStoreUnavailable(error)) throw error;
        await Promise.race([end.promise, new Promise((resolve) => setTimeout(resolve, retryMs))]);
      } finally {
        forget();
        group.delete(end);
        if (group.size === 0) this.#waiting.delete(id);
      }
    }
  }

  wake(id: string): void {
    for (const { resolve } of this.#waiting.get(id) ?? []) resolve();
  }

  /** Wakes the callers that wait for an end that another process has written. */
  async wakeEnded(): Promise<void> {
    const ids = [...this.#waiting.keys()];
    if (ids.length === 0) return;
    const open = new Set(await this.#rows.openAmong(ids));
    for (const id of ids) if (!open.has(id)) this.wake(id);
  }

  /** Rejects all waiting callers. */
  close(reason: unknown): void {
    for (const group of this.#waiting.values()) for (const { reject } of group) reject(reason);
  }
}
