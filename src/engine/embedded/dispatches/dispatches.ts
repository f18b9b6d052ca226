import type { DispatchReceipt } from "../../../protocol/dispatch.ts";
import { query } from "../../../sqlite/statements.ts";
import type { AdmitRequest, EngineHandlers, LinePlace, WaitOptions, WorkContext } from "../../contract.ts";
import {
  type DispatchRow,
  isRiskySql,
  notDead,
  type QueuedDispatch,
  unknownDispatch,
} from "../../shared/dispatches/dispatch-store.ts";
import { Dispatches } from "../../shared/dispatches/dispatches.ts";
import { closing, type EngineLimits } from "../../shared/engine-base.ts";
import { lineOf, ownerOfInput } from "../../shared/queue/owners.ts";
import { joinsSql } from "../../shared/stored-rows.ts";
import type { EmbeddedBase, EnginePart } from "../embedded-base.ts";
import { type Admissions, createAdmissions, createDispatchRows } from "./dispatch-rows.ts";

const pruned = 500;

/** The inputs of a folder: the process that holds the lease runs them. */
export class EmbeddedDispatches extends Dispatches<EmbeddedBase> implements EnginePart {
  readonly #limits: EngineLimits;
  readonly #admissions: Admissions;
  readonly #sql: ReturnType<typeof statements>;
  #handlers: EngineHandlers | undefined;
  /** The highest `seq` that is enqueued in this process. */
  #seen = 0;
  #tenure: AbortSignal | undefined;

  constructor(base: EmbeddedBase, limits: EngineLimits) {
    super(base, createDispatchRows(base), limits);
    this.#limits = limits;
    this.#admissions = createAdmissions(base, { limits, attached: (scope) => this.calls.waiting(scope) });
    this.#sql = statements(base);
  }

  async admit(request: AdmitRequest): Promise<DispatchReceipt> {
    const { receipt, dispatch } = await this.#admissions.admit(request);
    if (dispatch !== undefined) this.#enqueue(dispatch);
    return receipt;
  }

  /** `Engine.inLine`, in the process that holds the lease. */
  async inLine<Value>(
    session: LinePlace,
    work: (context: WorkContext) => Promise<Value>,
    options?: WaitOptions,
  ): Promise<Value> {
    if (this.base.lease.signal.aborted) throw closing();
    const owner = ownerOfInput(session);
    const { queue } = this.base;
    const { waiting, waitingPerOwner, waitingPerSession } = this.#limits;
    // The queue counts all waiting inputs and runs, except those that other processes accept at this moment. Only if it is nearly
    // full, the rows are counted.
    const all = queue.waiting();
    const hasRoom =
      all < waiting &&
      queue.waiting({ owner }) < Math.max(1, waitingPerOwner ?? waiting - all) &&
      queue.waiting({ line: lineOf(session) }) < waitingPerSession;
    if (!hasRoom) this.#admissions.checkRoom(session, owner);
    return await this.calls.run(session, work, options?.signal);
  }

  protected async requeueFailed(id: string): Promise<void> {
    const dispatch = await this.base.commit((): QueuedDispatch => {
      const row = this.#sql.byId.get(id);
      if (row === undefined) throw unknownDispatch();
      if (row.status !== "failed") throw notDead();
      return this.#admissions.putBack(row);
    });
    this.#enqueue(dispatch);
  }

  async start(handlers: EngineHandlers): Promise<void> {
    const { lease } = this.base;
    await this.base.commit(() => this.#sql.requeueLeft.run(Number(lease.holderDied)), { fenced: true });
    this.attempts.clear();
    this.#handlers = handlers;
    this.#tenure = lease.signal;
    if (this.#isWorking()) this.#enqueueAll();
    this.ends.wakeEnded().catch(() => undefined);
  }

  onForeignWrite(): void {
    if (this.#isWorking()) {
      this.#enqueueNew();
      for (const dispatch of this.attempts.retrying()) {
        if (this.#sql.isQueued.get(dispatch.dispatch_id) === undefined) this.attempts.leave(dispatch);
      }
      for (const { dispatch_id } of this.#sql.cancelling.all()) this.attempts.cancel(dispatch_id);
    }
    this.ends.wakeEnded().catch(() => undefined);
  }

  async prune(endedBefore: number): Promise<boolean> {
    const remove = (): number => this.#sql.prune.run(endedBefore, pruned);
    return (await this.base.commit(remove, { fenced: true })) === pruned;
  }

  #isWorking(): boolean {
    const tenure = this.#tenure;
    return tenure !== undefined && !tenure.aborted && tenure === this.base.lease.signal;
  }

  /** Enqueues a new input, after the inputs with a lower `seq` that other processes have admitted. */
  #enqueue(dispatch: QueuedDispatch): void {
    if (!this.#isWorking() || dispatch.seq <= this.#seen) return;
    if (dispatch.seq === this.#seen + 1) this.#join(dispatch);
    else this.#enqueueNew();
  }

  #enqueueNew(): void {
    for (const dispatch of this.#sql.waitingAfter.all(this.#seen)) this.#join(dispatch);
  }

  /** Enqueues all waiting rows, with an index, so that the number of ended rows does not matter. */
  #enqueueAll(): void {
    const newest = Number(this.#sql.newest.get()?.seq ?? 0);
    for (const { risky, ...dispatch } of this.#sql.waiting.all()) this.#join(dispatch, risky === 1);
    this.#seen = Math.max(this.#seen, newest);
  }

  #join(dispatch: QueuedDispatch, isRisky = false): void {
    if (this.#handlers === undefined) return;
    this.#seen = dispatch.seq;
    this.base.queue.join(this.attempts.toJob(dispatch, this.#handlers, isRisky));
  }
}

const queuedColumns = `seq, dispatch_id, agent, instance_id, session, owner, ${joinsSql}`;

function statements({ database }: EmbeddedBase) {
  // `status <> 'completed'` repeats the condition of the partial index, which SQLite otherwise does not use.
  return {
    byId: query<DispatchRow>(database, "SELECT * FROM dispatches WHERE dispatch_id = ?"),
    isQueued: query(database, "SELECT 1 FROM dispatches WHERE dispatch_id = ? AND status = 'queued'"),
    newest: query<Pick<DispatchRow, "seq">>(database, "SELECT max(seq) AS seq FROM dispatches"),
    waiting: query<QueuedDispatch & { readonly risky: number }>(
      database,
      `SELECT ${queuedColumns}, ${isRiskySql} AS risky
       FROM dispatches INDEXED BY dispatches_waiting WHERE status = 'queued' ORDER BY seq`,
    ),
    waitingAfter: query<QueuedDispatch>(
      database,
      `SELECT ${queuedColumns} FROM dispatches WHERE seq > ? AND status = 'queued' ORDER BY seq`,
    ),
    cancelling: query<Pick<DispatchRow, "dispatch_id">>(
      database,
      "SELECT dispatch_id FROM dispatches INDEXED BY dispatches_cancelling WHERE cancelling = 1",
    ),
    requeueLeft: query(
      database,
      `UPDATE dispatches SET status = 'queued', spent = spent + iif(idle, 0, ?)
       WHERE status = 'running' AND status <> 'completed'`,
    ),
    prune: query(
      database,
      `DELETE FROM dispatches WHERE seq IN
         (SELECT seq FROM dispatches INDEXED BY dispatches_ended WHERE ended_at < ? LIMIT ?)`,
    ),
  };
}
