import { KitError } from "../../../base/kit-error.ts";
import type { DispatchReceipt, DispatchRecord } from "../../../protocol/dispatch.ts";
import { query } from "../../../sqlite/statements.ts";
import type { AdmitRequest, Engine, EngineHandlers } from "../../contract.ts";
import type { EngineLimits, EnginePart } from "../../engine-base.ts";
import type { EmbeddedBase } from "../embedded-base.ts";
import { ownerOfInput } from "../work/owner.ts";
import { createWaiters } from "../work/waiters.ts";
import { createAdmissions } from "./admission.ts";
import { AttachedCalls } from "./attached-calls.ts";
import { createDispatchAttempts } from "./dispatch-attempts.ts";
import {
  createDispatchList,
  type DispatchPlace,
  type DispatchRow,
  lineOf,
  toRecord,
} from "./dispatch-rows.ts";

export type Dispatches = EnginePart &
  Pick<
    Engine,
    | "admit"
    | "getDispatch"
    | "listDispatches"
    | "awaitDispatch"
    | "cancelDispatch"
    | "listDeadLetters"
    | "redrive"
  > & {
    /** `Engine.inLine`, once the lease is held. */
    inLine: Engine["inLine"];
    /** How many inputs of callers wait without being stored. */
    attached(): number;
  };

const pruned = 500;

/** Inputs for sessions, from admission to their end. */
export function createDispatches(base: EmbeddedBase, limits: EngineLimits): Dispatches {
  const { clock, lease, lines } = base;
  const waiters = createWaiters();
  const calls = new AttachedCalls(base);
  const admissions = createAdmissions(base, { limits, attached: (scope) => calls.waiting(scope) });
  const attempts = createDispatchAttempts(base, { limits, ended: waiters.wake });
  const list = createDispatchList(base);
  const sql = statements(base);
  let handlers: EngineHandlers | undefined;
  /** The highest `seq` that is enqueued in this process. */
  let seen = 0;
  let tenure: AbortSignal | undefined;

  /** Enqueues a new input. Inputs that another process has admitted in between go first, so that `seq` gives the order. */
  function enqueue(place: DispatchPlace): void {
    if (!isWorking() || place.seq <= seen) return;
    if (place.seq === seen + 1) join(place);
    else enqueueNew();
  }

  function enqueueNew(): void {
    for (const place of sql.waitingAfter.all(seen)) join(place);
  }

  /** Enqueues all waiting rows by their index, so that the number of ended rows does not matter. */
  function enqueueAll(): void {
    const newest = Number(sql.newest.get()?.seq ?? 0);
    for (const { risky, ...place } of sql.waiting.all()) join(place, risky === 1);
    seen = Math.max(seen, newest);
  }

  function join(place: DispatchPlace, isRisky = false): void {
    if (handlers === undefined) return;
    seen = place.seq;
    lines.join(attempts.toWork(place, handlers, isRisky));
  }

  function isWorking(): boolean {
    return tenure !== undefined && !tenure.aborted && tenure === lease.signal;
  }

  async function admit(request: AdmitRequest): Promise<DispatchReceipt> {
    const { receipt, place } = await admissions.admit(request);
    if (place !== undefined) enqueue(place);
    return receipt;
  }

  function find(id: string): DispatchRecord | undefined {
    const row = sql.byId.get(id);
    return row === undefined ? undefined : toRecord(row, base);
  }

  async function awaitDispatch(id: string, signal?: AbortSignal): Promise<DispatchRecord | undefined> {
    for (;;) {
      const row = sql.byId.get(id);
      if (row === undefined) return undefined;
      if (row.ended_at !== null) return toRecord(row, base);
      await waiters.wait(id, signal);
    }
  }

  return {
    admit,
    attached: () => calls.waiting(),
    getDispatch: async (id) => find(id),
    listDispatches: async (filter) => list(filter),
    listDeadLetters: async (filter) => list({ ...filter, status: "failed" }),
    awaitDispatch: async (id, options) => awaitDispatch(id, options?.signal),

    async cancelDispatch(id) {
      const row = await base.commit(() => sql.cancel.get(clock.now(), id));
      if (row === undefined) return false;
      if (row.status === "running") attempts.cancel(id);
      else {
        attempts.leaveCancelled();
        lines.leave({ id, line: lineOf(row) });
        waiters.wake(id);
      }
      return true;
    },

    async redrive(id) {
      const place = await base.commit((): DispatchPlace => {
        const row = sql.byId.get(id);
        if (row === undefined) throw unknown();
        if (row.status !== "failed") throw notDead();
        return admissions.putBack(row);
      });
      enqueue(place);
      const record = find(id);
      if (record === undefined) throw unknown();
      return record;
    },

    async inLine(place, work, options) {
      admissions.checkRoomInLine(place, ownerOfInput(place));
      return await calls.run(place, work, options?.signal);
    },

    async start(given) {
      const { signal } = lease;
      await base.commit(
        () => {
          const now = clock.now();
          sql.cancelLeft.run(now);
          sql.failLeft.run(now, diedText, limits.attempts);
          sql.requeueLeft.run();
        },
        { fenced: true },
      );
      attempts.clear();
      handlers = given;
      tenure = signal;
      if (isWorking()) enqueueAll();
      for (const id of waiters.ids()) wakeEnded(id);
    },

    onForeignWrite() {
      if (isWorking()) {
        enqueueNew();
        attempts.leaveCancelled();
        for (const { dispatch_id } of sql.cancelling.all()) attempts.cancel(dispatch_id);
      }
      for (const id of waiters.ids()) wakeEnded(id);
    },

    close: waiters.close,

    async prune(endedBefore) {
      const removed = await base.commit(() => sql.prune.run(endedBefore, pruned), { fenced: true });
      return removed === pruned;
    },
  };

  function wakeEnded(id: string): void {
    const row = sql.hasEnded.get(id);
    if (row === undefined || row.ended_at !== null) waiters.wake(id);
  }
}

const diedText = JSON.stringify({
  type: "internal_error",
  message: "The process ended during the last attempt.",
});

const place = "seq, dispatch_id, agent, instance_id, session, owner";

function statements({ database }: EmbeddedBase) {
  // `status <> 'completed'` repeats the condition of the partial index, which SQLite otherwise does not use.
  return {
    byId: query<DispatchRow>(database, "SELECT * FROM dispatches WHERE dispatch_id = ?"),
    hasEnded: query<Pick<DispatchRow, "ended_at">>(
      database,
      "SELECT ended_at FROM dispatches WHERE dispatch_id = ?",
    ),
    newest: query<Pick<DispatchRow, "seq">>(database, "SELECT max(seq) AS seq FROM dispatches"),
    // An attempt that failed has set the time of the next one: without it, its process has died.
    waiting: query<DispatchPlace & { readonly risky: number }>(
      database,
      `SELECT ${place}, attempts > 2 AND next_attempt_at IS NULL AS risky
       FROM dispatches INDEXED BY dispatches_waiting WHERE status = 'queued' ORDER BY seq`,
    ),
    waitingAfter: query<DispatchPlace>(
      database,
      `SELECT ${place} FROM dispatches WHERE seq > ? AND status = 'queued' ORDER BY seq`,
    ),
    cancel: query<DispatchRow>(
      database,
      `UPDATE dispatches SET cancelling = (status = 'running'),
         ended_at = iif(status = 'running', NULL, ?), next_attempt_at = NULL,
         status = iif(status = 'running', status, 'cancelled')
       WHERE dispatch_id = ? AND status IN ('queued', 'running') RETURNING *`,
    ),
    cancelling: query<Pick<DispatchRow, "dispatch_id">>(
      database,
      "SELECT dispatch_id FROM dispatches INDEXED BY dispatches_cancelling WHERE cancelling = 1",
    ),
    cancelLeft: query(
      database,
      `UPDATE dispatches SET status = 'cancelled', cancelling = 0, ended_at = ?
       WHERE status = 'running' AND status <> 'completed' AND cancelling = 1`,
    ),
    failLeft: query(
      database,
      `UPDATE dispatches SET status = 'failed', ended_at = ?, error = ?
       WHERE status = 'running' AND status <> 'completed' AND attempts >= ?`,
    ),
    requeueLeft: query(
      database,
      "UPDATE dispatches SET status = 'queued' WHERE status = 'running' AND status <> 'completed'",
    ),
    prune: query(
      database,
      `DELETE FROM dispatches WHERE seq IN
         (SELECT seq FROM dispatches INDEXED BY dispatches_ended WHERE ended_at < ? LIMIT ?)`,
    ),
  };
}

function unknown(): KitError {
  return new KitError({ code: "not_found", message: "There is no such dispatch." });
}

function notDead(): KitError {
  return new KitError({ code: "conflict", message: "Only a dispatch that has failed can be redriven." });
}
