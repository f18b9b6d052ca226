import type { KitEvent } from "../../../protocol/event.ts";
import type { LiveStream } from "../../shared/events/live-stream.ts";
import { isNextDelta, joinDeltas, type OpenRun, toBatches } from "../../shared/events/stored-events.ts";
import type { EventTable } from "./event-table.ts";

/** The most rows that one transaction joins. */
const maxRows = 256;

/** Rows of a stream that hold deltas of a finished turn. */
interface Stretch {
  readonly id: number;
  readonly from: number;
  readonly to: number;
}

/** Turns that took longer than one flush: once they are finished, their deltas are spread over many rows. */
export interface FinishedTurns {
  /** Records the events that were just written to a stream, and the open deltas at their end. */
  note(live: LiveStream, written: readonly KitEvent[], open: OpenRun | undefined): void;
  /** Joins the deltas of some rows. Call it in a transaction, and the returned function after the commit. */
  join(): () => void;
  readonly hasStretches: boolean;
  forget(): void;
}

export function createFinishedTurns(table: EventTable): FinishedTurns {
  let stretches: Stretch[] = [];

  /** Joins deltas in up to `limit` rows of a stretch. Returns the number of rows it read, and the rest of the stretch. */
  function joinRows({ id, from, to }: Stretch, limit: number): { readRows: number; rest?: Stretch } {
    const rows = table.rows(id, { from, to }, limit);
    const before = rows.flatMap(({ events }) => events);
    const { events } = joinDeltas(before, true);
    const batches = toBatches(events);
    if (events.length < before.length && batches.length <= rows.length) table.replaceRows(id, rows, batches);
    const last = rows.at(-1)?.last ?? to;
    return { readRows: rows.length, ...(last < to ? { rest: { id, from: last + 1, to } } : {}) };
  }

  return {
    get hasStretches() {
      return stretches.length > 0;
    },
    note(live, written, open) {
      const { id, open: before } = live;
      live.open = open;
      if (before === undefined) return;
      const end = written.findIndex((event, at) => !isNextDelta(written[at - 1] ?? before.last, event));
      const news = end < 0 ? written.length : end;
      const run = { from: before.from, last: written[news - 1] ?? before.last, deltas: before.deltas + news };
      if (end < 0) live.open = run;
      else if (run.deltas > 1 && id !== undefined) stretches.push({ id, from: run.from, to: run.last.index });
    },
    join() {
      const remaining: Stretch[] = [];
      let rows = maxRows;
      for (const stretch of stretches) {
        const { readRows, rest } = rows > 0 ? joinRows(stretch, rows) : { readRows: 0, rest: stretch };
        rows -= readRows;
        if (rest !== undefined) remaining.push(rest);
      }
      return () => {
        stretches = remaining;
      };
    },
    forget() {
      stretches = [];
    },
  };
}
