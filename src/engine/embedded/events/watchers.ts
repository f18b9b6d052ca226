import type { Clock } from "../../../base/clock.ts";
import type { EventTable, StreamRow } from "./event-table.ts";

/** How soon the events of another process are seen; and, by the process that writes, that it has lost that right. */
const pollMs = 100;
const pollWritingMs = 1_000;

/** Those who wait for something new in a stream. Each is called once, and waits again if it wants to. */
export interface Watchers {
  /** Counts somebody who reads a stream, waiting or not; the function returned counts them out. */
  read(stream: string): () => void;
  isRead(stream: string): boolean;
  wait(stream: string, wake: () => void): void;
  leave(stream: string, wake: () => void): void;
  wake(stream: string): void;
  wakeAll(): void;
}

export interface WatcherOptions {
  readonly table: EventTable;
  readonly clock: Clock;
  /** Fires when the log closes. */
  readonly signal: AbortSignal;
  /** Whether other processes can write. */
  readonly shared: boolean;
  isWriting(): boolean;
}

interface Watch {
  readonly waiting: Set<() => void>;
  /** The stream's row when another process's writing was last looked at. */
  seen: StreamRow | undefined;
}

export function createWatchers({ table, clock, signal, ...options }: WatcherOptions): Watchers {
  const watches = new Map<string, Watch>();
  const readers = new Map<string, number>();
  let polling = false;
  let version = table.dataVersion();

  function wake(stream: string): void {
    const watch = watches.get(stream);
    if (watch === undefined) return;
    watches.delete(stream);
    for (const call of watch.waiting) call();
  }

  async function poll(): Promise<void> {
    try {
      while (watches.size > 0 && !signal.aborted) {
        await clock.sleep(options.isWriting() ? pollWritingMs : pollMs, signal);
        look();
      }
    } catch {
      // The log is closing, or its file is out of reach: whoever reads next is told so.
      for (const stream of [...watches.keys()]) wake(stream);
    } finally {
      polling = false;
    }
  }

  /** Wakes the readers of streams that another process has changed. */
  function look(): void {
    const current = table.dataVersion();
    if (current === version) return;
    version = current;
    for (const [stream, watch] of [...watches]) {
      const row = table.findStream(stream);
      const { seen } = watch;
      watch.seen = row;
      const same = row?.id === seen?.id && row?.last === seen?.last && row?.ended === seen?.ended;
      if (!same || row === undefined) wake(stream);
    }
  }

  return {
    isRead: (stream) => readers.has(stream),
    read(stream) {
      readers.set(stream, (readers.get(stream) ?? 0) + 1);
      return () => {
        const left = (readers.get(stream) ?? 0) - 1;
        if (left > 0) readers.set(stream, left);
        else readers.delete(stream);
      };
    },
    wake,
    wakeAll() {
      for (const stream of [...watches.keys()]) wake(stream);
    },
    wait(stream, call) {
      let watch = watches.get(stream);
      if (watch === undefined) {
        watch = { waiting: new Set(), seen: undefined };
        watches.set(stream, watch);
      }
      watch.waiting.add(call);
      if (!options.shared || polling) return;
      polling = true;
      void poll();
    },
    leave(stream, call) {
      const watch = watches.get(stream);
      if (watch?.waiting.delete(call) === true && watch.waiting.size === 0) watches.delete(stream);
    },
  };
}
