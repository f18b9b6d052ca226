import type { DatabaseSync } from "node:sqlite";
import { isoTime } from "../../../base/clock.ts";
import type { RunWait } from "../../../protocol/run.ts";
import { query } from "../../../sqlite/statements.ts";
import type { Timeline } from "../../durable-time.ts";
import type { EntryKind, JournalEntry } from "../../execution/replay.ts";
import type { PendingSignal, RunJournal } from "../../execution/run-journal.ts";

interface EntryRow {
  readonly position: number;
  readonly kind: EntryKind;
  readonly name: string;
  readonly state: JournalEntry["outcome"]["state"];
  readonly deadline: number | null;
  readonly ended_as: number | null;
  readonly value: string | null;
}

export function createJournalRows(database: DatabaseSync): RunJournal {
  const entries = query<EntryRow>(
    database,
    `SELECT position, kind, name, state, deadline, ended_as, value FROM run_journal WHERE run = ? ORDER BY position`,
  );
  const insert = query(
    database,
    `INSERT INTO run_journal (run, position, kind, name, state, ended_as, value) VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (run, position) DO UPDATE
     SET state = excluded.state, ended_as = excluded.ended_as, value = excluded.value`,
  );
  const insertWait = query(
    database,
    "INSERT INTO run_journal (run, position, kind, name, state, deadline, value) VALUES (?, ?, ?, ?, 'pending', ?, ?)",
  );
  const signal = query<PendingSignal>(
    database,
    `SELECT id, payload FROM run_signals
     WHERE run = ? AND taken = 0 AND name = ? AND accepted_at <= ? ORDER BY id LIMIT 1`,
  );
  // The journal has the payload now; the row stays, so that its idempotency key is known.
  const take = query(database, "UPDATE run_signals SET taken = 1, payload = NULL WHERE id = ?");
  const signalled = query(
    database,
    `SELECT 1 FROM run_journal INDEXED BY run_journal_open JOIN run_signals USING (run, name)
     WHERE run = ? AND taken = 0 AND kind = 'wait' AND state = 'pending' LIMIT 1`,
  );
  const open = query<Pick<EntryRow, "kind" | "name" | "deadline">>(
    database,
    `SELECT kind, name, deadline FROM run_journal INDEXED BY run_journal_open
     WHERE run = ? AND state = 'pending' ORDER BY position LIMIT 100`,
  );
  // The value of a wait that is open says what it takes; at its end, what it was given.
  const taken = query<Pick<EntryRow, "value">>(
    database,
    `SELECT value FROM run_journal INDEXED BY run_journal_open
     WHERE run = ? AND state = 'pending' AND kind = 'wait' AND name = ? ORDER BY position LIMIT 1`,
  );
  const deletions = ["run_journal", "run_signals"].map((table) =>
    query(database, `DELETE FROM ${table} WHERE run = ?`),
  );
  return {
    load: (run) => entries.all(run).map(toEntry),
    end(run, { position, kind, name }, { state, ended_as, value }) {
      insert.run(run, position, kind, name, state, ended_as, value);
    },
    beginWait(run, { position, kind, name }, { deadline, schema }) {
      insertWait.run(run, position, kind, name, deadline ?? null, schema);
    },
    schemaOf: (run, name) => taken.get(run, name)?.value ?? undefined,
    nextSignal: (run, name, deadline) => signal.get(run, name, deadline ?? Number.MAX_SAFE_INTEGER),
    take: ({ id }) => void take.run(id),
    canGoOn: (run) => signalled.get(run) !== undefined,
    waits: (run, toWall) => open.all(run).map((row) => toWait(row, toWall)),
    delete(run) {
      for (const deletion of deletions) deletion.run(run);
    },
  };
}

/** The last time that a date can be (ECMA-262, 21.4.1.1): what waits for longer waits for no date. */
const latestMs = 8.64e15;

function toWait(
  { kind, name, deadline }: Pick<EntryRow, "kind" | "name" | "deadline">,
  toWall: Timeline["toWall"],
): RunWait {
  const until = deadline === null ? Number.POSITIVE_INFINITY : toWall(deadline);
  return {
    ...(kind === "wait" ? { signal: name } : {}),
    ...(until > latestMs ? {} : { until: isoTime(until) }),
  };
}

function toEntry({ position, kind, name, state, deadline, ended_as, value }: EntryRow): JournalEntry {
  const outcome =
    state === "pending"
      ? { state, deadline: deadline ?? undefined }
      : { state, ended_as: Number(ended_as), value };
  return { position, kind, name, outcome };
}
