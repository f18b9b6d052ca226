import { isStoreUnavailable } from "../../protocol/error-code.ts";
import type { Waiters } from "../shared/queue/waiters.ts";

/** Between two looks of a caller that waits while the database is away. */
const retryMs = 250;

export interface WaitFor<Row> {
  readonly waiters: Waiters;
  readonly signal: AbortSignal | undefined;
  read(): Promise<Row | undefined>;
  hasEnded(row: Row): boolean;
}

/** Waits for the end of work; gives its row, or undefined for an unknown id. A caller that waits already outlasts an outage. */
export async function awaitEnd<Row>(
  id: string,
  { waiters, signal, ...rows }: WaitFor<Row>,
): Promise<Row | undefined> {
  signal?.throwIfAborted();
  for (let isKnown = false; ; ) {
    // The wait begins before the row is read: an end in between is not missed.
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
