import { query } from "../../../sqlite/statements.ts";
import {
  type BegunWait,
  type EndedWait,
  type EntryEnd,
  type EntryHead,
  type EntryRow,
  type RunJournal,
  type RunJournals,
  toEntry,
} from "../../shared/runs/run-journal.ts";
import { toJournalRecord, toRunWait } from "../../shared/runs/run-store.ts";
import type { EmbeddedBase } from "../embedded-base.ts";

interface PendingSignal {
  readonly id: number;
  readonly payload: string;
}

export interface JournalRows extends RunJournals {
  /** The schema of the first open wait for a signal, in the stored form of `Blobs.store`; `undefined` without a wait or schema. */
  schemaOf(run: number, name: string): string | undefined;
  /** Whether a signal has arrived for an open wait, or a run has ended that an open step waits for. */
  canGoOn(run: number): boolean;
  /** Deletes a journal and its signals. Call it in a transaction. */
  delete(run: number): void;
}

/** The journals of runs, and the signals for their waits. */
export function createJournalRows(base: EmbeddedBase): JournalRows {
  const { database, time, clock } = base;
  const entries = query<EntryRow>(
    database,
    `SELECT position, kind, name, state, deadline, ended_as, value FROM run_journal WHERE run = ? ORDER BY position`,
  );
  const page = query<EntryRow>(
    database,
    `SELECT position, kind, name, state, deadline, ended_as, value FROM run_journal
     WHERE run = ? AND position > ? ORDER BY position LIMIT ?`,
  );
  const insert = query(
    database,
    `INSERT INTO run_journal (run, position, kind, name, made_after, state, ended_as, value)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run, position) DO UPDATE
     SET made_after = excluded.made_after, state = excluded.state, ended_as = excluded.ended_as, value = excluded.value`,
  );
  const insertWait = query(
    database,
    `INSERT INTO run_journal (run, position, kind, name, made_after, state, deadline, value, begun_at)
     VALUES (?, ?, ?, ?, ?, 'pending', ?, ?, ?)`,
  );
  const signal = query<PendingSignal>(
    database,
    `SELECT id, payload FROM run_signals
     WHERE run = ? AND taken = 0 AND name = ? AND accepted_at <= ? ORDER BY id LIMIT 1`,
  );
  // The payload moves to the journal; the row stays because of its idempotency key.
  const take = query(database, "UPDATE run_signals SET taken = 1, payload = NULL WHERE id = ?");
  const signalled = query(
    database,
    `SELECT 1 FROM run_journal INDEXED BY run_journal_open JOIN run_signals USING (run, name)
     WHERE run = ? AND taken = 0 AND kind = 'wait' AND state = 'pending' LIMIT 1`,
  );
  const awaited = query(
    database,
    `SELECT 1 FROM run_journal INDEXED BY run_journal_open
     WHERE run = ? AND state = 'pending' AND kind = 'step' AND NOT EXISTS (
       SELECT 1 FROM runs WHERE run_id = json_extract(value, '$') AND ended_at IS NULL) LIMIT 1`,
  );
  const pending = query<Pick<EntryRow, "kind" | "name" | "deadline" | "value">>(
    database,
    `SELECT kind, name, deadline, value FROM run_journal INDEXED BY run_journal_open
     WHERE run = ? AND state = 'pending' ORDER BY position LIMIT 100`,
  );
  // The value of an open wait is its schema; later it is the payload of its signal.
  const receivedSignal = query<Pick<EntryRow, "value">>(
    database,
    `SELECT value FROM run_journal INDEXED BY run_journal_open
     WHERE run = ? AND state = 'pending' AND kind = 'wait' AND name = ? ORDER BY position LIMIT 1`,
  );
  const deletions = ["run_journal", "run_signals"].map((table) =>
    query(database, `DELETE FROM ${table} WHERE run = ?`),
  );

  function nextSignal(run: number, { head, deadline }: BegunWait): PendingSignal | undefined {
    if (head.kind !== "wait") return undefined;
    return signal.get(run, head.name, deadline ?? Number.MAX_SAFE_INTEGER);
  }

  const isOver = ({ deadline }: BegunWait): boolean => deadline !== undefined && deadline <= time.now();

  function open(run: number, fence: number): RunJournal {
    const recorded = entries.all(run).map(toEntry);
    /** The number of ends on disk; `ends` also counts those of transactions that are not committed yet. */
    let committed = recorded.reduce((count, { outcome }) => count + (outcome.state === "pending" ? 0 : 1), 0);
    let ends = committed;

    async function write<Value>(work: () => Value): Promise<Value> {
      try {
        return await base.commit(work, { fence });
      } catch (error) {
        // The counts of a rolled-back transaction are undone with it.
        ends = committed;
        throw error;
      } finally {
        committed = ends;
      }
    }

    /** Call it in a transaction. */
    function record(
      { position, kind, name, made_after }: EntryHead,
      { state, value }: Omit<EntryEnd, "ended_as">,
    ): EntryEnd {
      ends += 1;
      insert.run(run, position, kind, name, made_after, state, ends, value);
      return { state, value, ended_as: ends };
    }

    /** Records the end of a wait; `undefined` if the wait cannot end yet. Call it in a transaction. */
    function recordEnd(wait: BegunWait): EntryEnd | undefined {
      const arrived = nextSignal(run, wait);
      if (arrived === undefined)
        return isOver(wait) ? record(wait.head, { state: "done", value: null }) : undefined;
      take.run(arrived.id);
      return record(wait.head, { state: "done", value: arrived.payload });
    }

    return {
      entries: recorded,
      end: (head, outcome) => write(() => record(head, outcome)),
      beginWait: (wait, schema) =>
        write(() => {
          const end = recordEnd(wait);
          const { position, kind, name, made_after } = wait.head;
          if (end === undefined) {
            const begun = [made_after, wait.deadline ?? null, schema, clock.now()];
            insertWait.run(run, position, kind, name, ...begun);
          }
          return end;
        }),
      hasDue: (waits) => waits.some((wait) => isOver(wait) || nextSignal(run, wait) !== undefined),
      endWaits: (waits) =>
        write(() =>
          waits.flatMap((wait): EndedWait[] => {
            const end = recordEnd(wait);
            return end === undefined ? [] : [{ position: wait.head.position, end }];
          }),
        ),
    };
  }

  return {
    open: async ({ id }, fence) => open(id, fence),
    schemaOf: (run, name) => receivedSignal.get(run, name)?.value ?? undefined,
    canGoOn: (run) => signalled.get(run) !== undefined || awaited.get(run) !== undefined,
    page: async (run, { after, limit }) =>
      page.all(run, after, limit).map((row) => toJournalRecord(row, base)),
    waits: async (runs) =>
      new Map(runs.map((run) => [run, pending.all(run).map((row) => toRunWait(row, base))])),
    delete(run) {
      for (const deletion of deletions) deletion.run(run);
    },
  };
}
