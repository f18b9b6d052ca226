import { isStoreUnavailable } from "../../protocol/error-code.ts";
import type { Waiters } from "../shared/queue/waiters.ts";

/** The pause between two reads while the database is unavailable. */
const retryMs = 250;

export interface WaitFor<Row> {
  readonly waiters: Waiters;
  readonly signal: AbortSignal | undefined;
  read(): Promise<Row | undefined>;
  hasEnded(row: Row): boolean;
}

/** Waits for the end of work. Returns its row, or `undefined` for an unknown id. Once the work was found, an outage of the database does not end the wait. */
export async function awaitEnd<Row>(
  id: string,
  { waiters, signal, ...rows }: WaitFor<Row>,
): Promise<Row | undefined> {
  signal?.throwIfAborted();
  for (let isKnown = false; ; ) {
    // The wait begins before the row is read, so that an end in between is not missed.
    const leave = new AbortController();
    const either = signal === undefined ? leave.signal : AbortSignal.any([signal, leave.signal]);
    const ended = waiters.wait(id, either);
    ended.catch(() => undefined);
    try {
      const row = await rows.read();
      if (row === undefined || rows.hasEnded(row)) return row;
      isKnown = true;
      await ended;
    } catch (error) {
      if (!isKnown || !isStoreUnavailable(error)) throw error;
      await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, retryMs))]);
    } finally {
      leave.abort();
    }
  }
}
