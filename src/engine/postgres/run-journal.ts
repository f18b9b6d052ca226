import type { RunJournalEntry, RunWait } from "../../protocol/run.ts";
import { leaseLost } from "../shared/engine-base.ts";
import {
  type BegunWait,
  type EndedWait,
  type EntryEnd,
  type EntryHead,
  type EntryRow,
  type JournalEntry,
  type RunJournal,
  type RunJournals,
  toEntry,
} from "../shared/runs/run-journal.ts";
import { toJournalRecord, toRunWait } from "../shared/runs/run-store.ts";
import type { PostgresBase } from "./postgres-base.ts";

interface SignalRow {
  readonly id: number;
  readonly name: string;
  readonly accepted_at: number;
  readonly payload: string;
}

interface WrittenRow extends EntryRow, Pick<EntryHead, "made_after"> {}

/** The content of one statement: journal rows to write, and signals to mark as taken. */
interface Draft {
  readonly rows: WrittenRow[];
  readonly receivedSignals: number[];
  /** The number of the last recorded end. */
  ends: number;
}

interface Pending {
  readonly waits: readonly BegunWait[];
  write(draft: Draft, signals: readonly SignalRow[]): unknown;
  readonly resolve: (value: never) => void;
  readonly reject: (reason: unknown) => void;
}

/** The journals of runs. Only the owner of a run takes its signals, so it can read them before it writes. */
export class JournalRows implements RunJournals {
  readonly #base: PostgresBase;

  constructor(base: PostgresBase) {
    this.#base = base;
  }

  async open(run: { readonly id: number; readonly run_id: string }, fence: number): Promise<RunJournal> {
    const rows = await this.#base.database.rows<EntryRow>(
      `SELECT position, kind, name, state, deadline, ended_as, value FROM $s.run_journal
       WHERE run = $1 ORDER BY position`,
      [run.id],
    );
    return new OpenJournal(this.#base, { run: run.id, fence, entries: rows.map(toEntry) });
  }

  async page(
    run: number,
    { after, limit }: { readonly after: number; readonly limit: number },
  ): Promise<readonly RunJournalEntry[]> {
    const rows = await this.#base.database.rows<EntryRow>(
      `SELECT position, kind, name, state, deadline, ended_as, value FROM $s.run_journal
       WHERE run = $1 AND position > $2 ORDER BY position LIMIT $3`,
      [run, after, limit],
    );
    return rows.map((row) => toJournalRecord(row, this.#base));
  }

  /** The stored schema of the first open wait for a signal; `undefined` without a wait or schema. */
  async schemaOf(run: number, name: string): Promise<string | undefined> {
    const row = await this.#base.database.row<Pick<EntryRow, "value">>(
      `SELECT value FROM $s.run_journal
       WHERE run = $1 AND state = 'pending' AND kind = 'wait' AND name = $2 ORDER BY position LIMIT 1`,
      [run, name],
    );
    return row?.value ?? undefined;
  }

  async waits(runs: readonly number[]): Promise<ReadonlyMap<number, readonly RunWait[]>> {
    const byRun = new Map<number, RunWait[]>();
    if (runs.length === 0) return byRun;
    const rows = await this.#base.database.rows<EntryRow & { readonly id: number }>(
      `SELECT run AS id, kind, name, deadline, value FROM $s.run_journal
       WHERE run = ANY($1) AND state = 'pending' ORDER BY run, position LIMIT 10000`,
      [runs],
    );
    for (const row of rows) {
      const waits = byRun.get(row.id) ?? [];
      byRun.set(row.id, waits);
      if (waits.length < 100) waits.push(toRunWait(row, this.#base));
    }
    return byRun;
  }
}

/** The journal of one run. One statement runs at a time; calls during it share the next statement. */
class OpenJournal implements RunJournal {
  readonly entries: readonly JournalEntry[];
  readonly #base: PostgresBase;
  readonly #run: number;
  readonly #fence: number;
  /** How many stored calls have an outcome. */
  #ends: number;
  #pending: Pending[] = [];
  #busy = false;
  /** Whether a statement failed that the database may have committed. */
  #isInDoubt = false;
  /** The outcomes that such a statement has stored, by position. */
  readonly #found = new Map<number, EntryEnd>();

  constructor(
    base: PostgresBase,
    { run, fence, entries }: Pick<RunJournal, "entries"> & { readonly run: number; readonly fence: number },
  ) {
    this.#base = base;
    this.#run = run;
    this.#fence = fence;
    this.entries = entries;
    this.#ends = entries.filter(({ outcome }) => outcome.state !== "pending").length;
  }

  end(head: EntryHead, outcome: Omit<EntryEnd, "ended_as">): Promise<EntryEnd> {
    return this.#write([], (draft) => this.#found.get(head.position) ?? recordEnd(draft, head, outcome));
  }

  beginWait(wait: BegunWait, schema: string | null): Promise<EntryEnd | undefined> {
    return this.#write([wait], (draft, signals) => {
      const end = this.#endWait(draft, wait, signals);
      if (end !== undefined) return end;
      draft.rows.push({
        ...wait.head,
        state: "pending",
        deadline: wait.deadline ?? null,
        ended_as: null,
        value: schema,
      });
      return undefined;
    });
  }

  async hasDue(waits: readonly BegunWait[]): Promise<boolean> {
    if (waits.some((wait) => this.#isOver(wait))) return true;
    const signals = await this.#signals(waits);
    return waits.some((wait) => findSignal(wait, signals, []) !== undefined);
  }

  endWaits(waits: readonly BegunWait[]): Promise<readonly EndedWait[]> {
    return this.#write(waits, (draft, signals) =>
      waits.flatMap((wait): EndedWait[] => {
        const end = this.#endWait(draft, wait, signals);
        return end === undefined ? [] : [{ position: wait.head.position, end }];
      }),
    );
  }

  #isOver({ deadline }: BegunWait): boolean {
    return deadline !== undefined && deadline <= this.#base.time.now();
  }

  #endWait(draft: Draft, wait: BegunWait, signals: readonly SignalRow[]): EntryEnd | undefined {
    const found = this.#found.get(wait.head.position);
    if (found !== undefined) return found;
    const signal = findSignal(wait, signals, draft.receivedSignals);
    if (signal !== undefined) {
      draft.receivedSignals.push(signal.id);
      return recordEnd(draft, wait.head, { state: "done", value: signal.payload });
    }
    return this.#isOver(wait) ? recordEnd(draft, wait.head, { state: "done", value: null }) : undefined;
  }

  #write<Value>(
    waits: readonly BegunWait[],
    write: (draft: Draft, signals: readonly SignalRow[]) => Value,
  ): Promise<Value> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ waits, write, resolve, reject });
      if (this.#busy) return;
      this.#busy = true;
      setImmediate(() => void this.#flush());
    });
  }

  async #flush(): Promise<void> {
    while (this.#pending.length > 0) {
      const batch = this.#pending.splice(0);
      try {
        if (this.#isInDoubt) await this.#findStored();
        const signals = await this.#signals(batch.flatMap(({ waits }) => waits));
        const draft: Draft = { rows: [], receivedSignals: [], ends: this.#ends };
        const values = batch.map(({ write }) => write(draft, signals));
        this.#isInDoubt = true;
        await this.#store(draft);
        this.#isInDoubt = false;
        this.#ends = draft.ends;
        for (const [index, { resolve }] of batch.entries()) resolve(values[index] as never);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#busy = false;
  }

  /**
   * Reads what a failed statement has stored: a signal that it took would be missing for the one that repeats it. Waits for the lock of
   * the run, because the failed statement can still run.
   */
  async #findStored(): Promise<void> {
    const rows = await this.#base.database.transaction(async (ask) => {
      await ask("SELECT 1 FROM $s.runs WHERE id = $1 FOR UPDATE", [this.#run]);
      return await ask<EntryRow>(
        "SELECT position, kind, name, state, deadline, ended_as, value FROM $s.run_journal WHERE run = $1 AND ended_as > $2",
        [this.#run, this.#ends],
      );
    });
    for (const { position, outcome } of rows.map(toEntry)) {
      if (outcome.state === "pending") continue;
      this.#found.set(position, outcome);
      this.#ends = Math.max(this.#ends, outcome.ended_as);
    }
    this.#isInDoubt = false;
  }

  async #signals(waits: readonly BegunWait[]): Promise<readonly SignalRow[]> {
    const names = waits.flatMap(({ head }) => (head.kind === "wait" ? [head.name] : []));
    if (names.length === 0) return [];
    return await this.#base.database.rows<SignalRow>(
      `SELECT id, name, accepted_at, payload FROM $s.run_signals
       WHERE run = $1 AND NOT taken AND name = ANY($2) ORDER BY id LIMIT 1000`,
      [this.#run, names],
    );
  }

  /** Writes only if this node owns the run; the lock of the run's row keeps it so until the statement ends. */
  async #store({ rows, receivedSignals }: Draft): Promise<void> {
    if (rows.length === 0 && receivedSignals.length === 0) return;
    const column = (value: (row: WrittenRow) => unknown): unknown[] => rows.map(value);
    const counted = await this.#base.database.row<{ count: number }>(
      `WITH own AS MATERIALIZED (
         SELECT id FROM $s.runs WHERE id = $1 AND fence = $2 AND status = 'running' FOR UPDATE
       ), written AS (
         INSERT INTO $s.run_journal (run, position, kind, name, state, deadline, ended_as, value, made_after, begun_at)
         SELECT own.id, new.*, CASE WHEN new.state = 'pending' THEN $12::bigint END FROM own, unnest($3::int[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::int[],
           $9::text[], $11::int[]) AS new (position, kind, name, state, deadline, ended_as, value, made_after)
         ON CONFLICT (run, position) DO UPDATE
         SET state = excluded.state, ended_as = excluded.ended_as, value = excluded.value, made_after = excluded.made_after
       ), taken AS (
         UPDATE $s.run_signals SET taken = true, payload = NULL FROM own WHERE run_signals.id = ANY($10::bigint[])
       )
       SELECT count(*) AS count FROM own`,
      [
        this.#run,
        this.#fence,
        column(({ position }) => position),
        column(({ kind }) => kind),
        column(({ name }) => name),
        column(({ state }) => state),
        column(({ deadline }) => deadline),
        column(({ ended_as }) => ended_as),
        column(({ value }) => value),
        receivedSignals,
        column(({ made_after }) => made_after),
        this.#base.clock.now(),
      ],
    );
    if (counted?.count !== 1) throw leaseLost();
  }
}

function findSignal(
  { head, deadline }: BegunWait,
  signals: readonly SignalRow[],
  receivedSignals: readonly number[],
): SignalRow | undefined {
  if (head.kind !== "wait") return undefined;
  const latest = deadline ?? Number.MAX_SAFE_INTEGER;
  return signals.find(
    ({ id, name, accepted_at }) =>
      name === head.name && accepted_at <= latest && !receivedSignals.includes(id),
  );
}

function recordEnd(
  draft: Draft,
  { position, kind, name, made_after }: EntryHead,
  { state, value }: Omit<EntryEnd, "ended_as">,
): EntryEnd {
  draft.ends += 1;
  const ended_as = draft.ends;
  draft.rows.push({ position, kind, name, made_after, state, deadline: null, ended_as, value });
  return { state, value, ended_as };
}
