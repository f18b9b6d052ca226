import { runStream } from "../../../protocol/session-name.ts";
import type { WaitingSignal } from "../../../protocol/waiting.ts";
import { query } from "../../../sqlite/statements.ts";
import type {
  EngineHandlers,
  Page,
  RunReceipt,
  RunRequest,
  RunSignal,
  WaitingListing,
} from "../../contract.ts";
import type { EngineLimits } from "../../shared/engine-base.ts";
import {
  forgetFailures,
  notFailed,
  type QueuedRun,
  type RunRow,
  unknownRun,
} from "../../shared/runs/run-store.ts";
import { Runs, type RunsOptions } from "../../shared/runs/runs.ts";
import { type SignalRow, toWaitingSignal } from "../../shared/runs/waiting-signals.ts";
import type { EmbeddedBase, EnginePart } from "../embedded-base.ts";
import { createJournalRows, type JournalRows } from "./journal-rows.ts";
import { createHeldQueue, createRecovery, createWakeUps, type WakeUps } from "./requeue-runs.ts";
import { createRunAdmission, createRunRows, createSignalSender, type RunAdmission } from "./run-rows.ts";

type NumberedRun = QueuedRun & { readonly number: number };

const pruned = 100;
/** Runs that ended in this period before the last end: a process that died then may not have ended their streams. */
const lastEndsMs = 1_000;

/** The runs of a folder: the process that holds the lease executes them. */
export class EmbeddedRuns extends Runs<EmbeddedBase> implements EnginePart {
  readonly #journals: JournalRows;
  readonly #admission: RunAdmission;
  readonly #send: ReturnType<typeof createSignalSender>;
  readonly #waitingSignals: ReturnType<typeof createWaitingSignals>;
  readonly #recover: () => void;
  readonly #queueHeld: () => void;
  readonly #wakeUps: WakeUps;
  readonly #sql: ReturnType<typeof statements>;
  #handlers: EngineHandlers | undefined;
  /** The highest number of `run_queue` that this process has enqueued. */
  #seen = 0;
  #tenure: AbortSignal | undefined;
  /** When this process last checked for writes of other processes. */
  #polledAt = 0;

  constructor(base: EmbeddedBase, { limits, ...options }: RunsOptions & { readonly limits: EngineLimits }) {
    const journals = createJournalRows(base);
    super(base, { store: createRunRows(base, journals), journals }, options);
    this.#journals = journals;
    this.#admission = createRunAdmission(base, limits);
    this.#send = createSignalSender(base, journals, () => this.#handlers?.checkSignal);
    this.#waitingSignals = createWaitingSignals(base);
    this.#recover = createRecovery(base);
    this.#queueHeld = createHeldQueue(base);
    this.#wakeUps = createWakeUps(base, { queued: () => this.enqueueNew() });
    this.#sql = statements(base);
  }

  protected accept(request: RunRequest): Promise<RunReceipt> {
    return this.#admission.start(request);
  }

  protected announce(): void {
    this.enqueueNew();
  }

  protected armWakeUps(): void {
    this.#wakeUps.arm();
  }

  protected requeueFailed(runId: string): Promise<RunRow> {
    return this.base.commit(() => {
      const run = this.#sql.byId.get(runId);
      if (run === undefined) throw unknownRun();
      if (run.status !== "failed") throw notFailed();
      this.#admission.checkRoom(run.owner);
      for (const forget of this.#sql.forgetFailures) forget.run(run.id);
      this.#sql.enqueue.run(run.id);
      return this.#sql.retry.get(run.id) ?? run;
    });
  }

  async listWaitingSignals(listing: WaitingListing): Promise<Page<WaitingSignal>> {
    return this.#waitingSignals(listing);
  }

  async resumeHeld(): Promise<void> {
    if (!this.#isWorking()) return;
    await this.base.commit(this.#queueHeld, { fenced: true });
    this.enqueueNew();
  }

  async signal(runId: string, signal: RunSignal): Promise<void> {
    await this.#send(runId, signal);
    this.enqueueNew();
    this.jobs.executions.get(runId)?.checkWaits();
  }

  async start(handlers: EngineHandlers): Promise<void> {
    const { lease, clock } = this.base;
    const { signal } = lease;
    const leave = (): void => {
      this.#wakeUps.stop();
      this.leaveAll(signal.reason);
    };
    signal.addEventListener("abort", leave, { once: true });
    const recover = (): void => {
      this.#recover();
      this.#queueHeld();
    };
    await this.base.commit(recover, { fenced: true });
    this.#handlers = handlers;
    this.#tenure = signal;
    this.#seen = 0;
    this.enqueueNew();
    this.#wakeUps.arm();
    this.#polledAt = clock.now();
    this.#endStreams(this.#sql.endedLast.all(lastEndsMs));
    this.ends.wakeEnded().catch(() => undefined);
    for (const { run_id } of this.#sql.orphans.all()) await this.cancelRun(run_id);
  }

  onForeignWrite(): void {
    const { executions } = this.jobs;
    if (this.#isWorking()) {
      const now = this.base.clock.now();
      this.enqueueNew();
      for (const { run_id } of this.#sql.cancelling.all()) this.jobs.cancel(run_id);
      for (const execution of executions.values()) execution.checkWaits();
      this.#endStreams(this.#sql.cancelledSince.all(Math.min(this.#polledAt, now) - lastEndsMs));
      this.#polledAt = now;
    }
    this.ends.wakeEnded().catch(() => undefined);
  }

  async prune(endedBefore: number): Promise<boolean> {
    const rows = this.#sql.endedBefore.all(endedBefore, pruned);
    // Events are deleted first: a run without events can be pruned later, but events without a run cannot be found.
    for (const { run_id } of rows) await this.events.delete(runStream(run_id));
    await this.base.commit(
      () => {
        for (const { id } of rows) {
          this.#journals.delete(id);
          this.#sql.remove.run(id);
        }
      },
      { fenced: true },
    );
    return rows.length === pruned;
  }

  #isWorking(): boolean {
    const { lease, stopping } = this.base;
    const tenure = this.#tenure;
    return tenure !== undefined && !tenure.aborted && tenure === lease.signal && !stopping.aborted;
  }

  protected enqueueNew(): void {
    if (this.#handlers === undefined || !this.#isWorking()) return;
    for (const run of this.#sql.queuedAfter.all(this.#seen)) {
      this.#seen = run.number;
      this.base.queue.join(this.jobs.toJob(run, this.#handlers));
    }
  }

  protected override noteEnd(runId: string): void {
    super.noteEnd(runId);
    // The end has queued the runs that were suspended until then.
    this.enqueueNew();
  }

  /** Ends the streams of runs that another process has cancelled, or that a crashed process has ended. */
  #endStreams(rows: readonly Pick<RunRow, "run_id">[]): void {
    for (const { run_id } of rows) this.noteEnd(run_id);
  }
}

function statements({ database }: EmbeddedBase) {
  return {
    byId: query<RunRow>(database, "SELECT * FROM runs WHERE run_id = ?"),
    queuedAfter: query<NumberedRun>(
      database,
      `SELECT number, id, run_id, crashes, owner FROM run_queue JOIN runs ON id = run WHERE number > ? ORDER BY number`,
    ),
    enqueue: query(database, "INSERT INTO run_queue (run) VALUES (?)"),
    forgetFailures: forgetFailures("run_journal", "?1").map((sql) => query(database, sql)),
    retry: query<RunRow>(
      database,
      `UPDATE runs SET status = 'queued', ended_at = NULL, error = NULL, result = NULL, crashes = 0, crashed_at = 0
       WHERE id = ? RETURNING *`,
    ),
    orphans: query<Pick<RunRow, "run_id">>(
      database,
      `SELECT child.run_id FROM runs AS child INDEXED BY runs_by_parent JOIN runs AS above ON above.run_id = child.parent
       WHERE child.parent IS NOT NULL AND child.status IN ('queued', 'running', 'waiting')
         AND (above.status = 'cancelled' OR above.cancelling = 1)`,
    ),
    cancelling: query<Pick<RunRow, "run_id">>(
      database,
      "SELECT run_id FROM runs INDEXED BY runs_cancelling WHERE cancelling = 1",
    ),
    endedLast: query<Pick<RunRow, "run_id">>(
      database,
      `SELECT run_id FROM runs INDEXED BY runs_by_end
       WHERE ended_at >= (SELECT max(ended_at) FROM runs WHERE ended_at IS NOT NULL) - ? LIMIT 10000`,
    ),
    cancelledSince: query<Pick<RunRow, "run_id">>(
      database,
      "SELECT run_id FROM runs INDEXED BY runs_by_end WHERE ended_at >= ? AND status = 'cancelled'",
    ),
    endedBefore: query<Pick<RunRow, "id" | "run_id">>(
      database,
      "SELECT id, run_id FROM runs INDEXED BY runs_by_end WHERE ended_at < ? LIMIT ?",
    ),
    remove: query(database, "DELETE FROM runs WHERE id = ?"),
  };
}

/** SQL: the open waits `j` of open runs `r` for signals that have not arrived. */
const openWaits = `run_journal AS j INDEXED BY run_journal_open JOIN runs AS r ON r.id = j.run
  WHERE j.state = 'pending' AND j.kind = 'wait' AND r.ended_at IS NULL AND r.cancelling = 0
    AND NOT EXISTS (SELECT 1 FROM run_signals AS s WHERE s.run = j.run AND s.taken = 0 AND s.name = j.name)`;

/** SQL: when a wait began; waits of earlier versions do not have the time. */
const begunAt = "coalesce(j.begun_at, r.started_at, r.accepted_at)";

/** `Engine.listWaitingSignals`. */
function createWaitingSignals(base: EmbeddedBase): (listing: WaitingListing) => Page<WaitingSignal> {
  const { database } = base;
  const page = query<SignalRow>(
    database,
    `SELECT r.run_id, r.workflow, substr(r.payload, 1, 400) AS payload, j.position, j.name, j.kind, j.deadline, j.value,
       ${begunAt} AS begun_at
     FROM ${openWaits} AND (${begunAt}, r.run_id, j.position) > (?, ?, ?)
     ORDER BY ${begunAt}, r.run_id, j.position LIMIT ?`,
  );
  const count = query<{ readonly count: number }>(database, `SELECT count(*) AS count FROM ${openWaits}`);
  return ({ limit, after }) => ({
    items: page
      .all(after === undefined ? 0 : Date.parse(after.at), after?.id ?? "", after?.position ?? 0, limit)
      .map((row) => toWaitingSignal(row, base)),
    total: Number(count.get()?.count),
  });
}
