import { type LinkedSignals, linkSignals } from "../../../base/abort.ts";
import { KitError } from "../../../base/kit-error.ts";
import { query } from "../../../sqlite/statements.ts";
import type { AdmitRequest, EngineHandlers, WorkContext } from "../../contract.ts";
import { type EngineLimits, fenceCheck, isLost } from "../../engine-base.ts";
import type { EmbeddedBase } from "../embedded-base.ts";
import { createPace } from "../work/create-pace.ts";
import { isOutage, outagePause } from "../work/outage.ts";
import { principalOf } from "../work/owner.ts";
import { fromStoredTrace } from "../work/stored-trace.ts";
import { mayPass, toEventError } from "../work/to-event-error.ts";
import type { Work, WorkEnd } from "../work/work-lines.ts";
import { type DispatchPlace, type DispatchRow, lineOf } from "./dispatch-rows.ts";

export interface DispatchAttempts {
  /**
   * An accepted input as work for its line. Suspects, under which the process has died several times, go one at a
   * time: so the one to blame comes to its end, and takes none of the others with it.
   */
  toWork(place: DispatchPlace, handlers: EngineHandlers, isRisky?: boolean): Work;
  /** Aborts the running attempt of a cancelled dispatch. */
  cancel(dispatchId: string): void;
  /** Lets the lines go on in which a cancelled input was to wait for its next attempt. */
  leaveCancelled(): void;
  /** Forgets what waits for its next attempt, with the lines. */
  clear(): void;
}

export interface AttemptOptions {
  readonly limits: EngineLimits;
  /** Called after each settlement is on disk. */
  ended(dispatchId: string): void;
}

interface Attempt {
  readonly row: DispatchRow;
  /** The signal of the lease under which the attempt began. */
  readonly tenure: AbortSignal;
  readonly stop: LinkedSignals;
  readonly releaseSlot: WorkContext["releaseSlot"];
  isCancelled: boolean;
}

type Outcome =
  | { readonly kind: "completed"; readonly result: unknown }
  | { readonly kind: "thrown"; readonly error: unknown };

const ended: WorkEnd = { ended: true };

/** Attempts that begin in one turn of the event loop. */
const perTurn = 8;
/** How often a risky looks whether it is its turn. */
const riskyPauseMs = 25;

export function createDispatchAttempts(base: EmbeddedBase, options: AttemptOptions): DispatchAttempts {
  const { database, clock, time, blobs, lease, stopping, draining } = base;
  const { limits } = options;
  const pace = createPace(perTurn);
  const running = new Map<string, Attempt>();
  const retrying = new Map<string, DispatchPlace>();
  /** How often each has met a store that is away, since it last reached one. */
  const outages = new Map<string, number>();
  /** The one that is at work. */
  let risky: string | undefined;
  const claim = query<DispatchRow>(
    database,
    `UPDATE dispatches SET status = 'running', attempts = attempts + 1, fence = ?, next_attempt_at = NULL,
       started_at = coalesce(started_at, ?)
     WHERE dispatch_id = ? AND status = 'queued' AND coalesce(next_attempt_at, 0) <= ? RETURNING *`,
  );
  const nextAttempt = query<{ next_attempt_at: number | null }>(
    database,
    "SELECT next_attempt_at FROM dispatches WHERE dispatch_id = ? AND status = 'queued'",
  );
  const finish = query<{ status: string }>(
    database,
    `UPDATE dispatches SET ended_at = ?1, status = iif(cancelling, 'cancelled', ?2),
       result = iif(cancelling, NULL, ?3), error = ?4, cancelling = 0
     WHERE dispatch_id = ?5 AND status = 'running' AND fence = ?6 RETURNING status`,
  );
  const requeue = query(
    database,
    `UPDATE dispatches SET status = 'queued', attempts = attempts - ?1, next_attempt_at = ?2, error = ?3
     WHERE dispatch_id = ?4 AND status = 'running' AND fence = ?5 AND cancelling = 0`,
  );

  async function begin(
    place: DispatchPlace,
    handlers: EngineHandlers,
    releaseSlot: Attempt["releaseSlot"],
  ): Promise<WorkEnd> {
    const fence = lease.fence;
    const tenure = lease.signal;
    retrying.delete(place.dispatch_id);
    try {
      const row = await base.commit(() => takeOne(place, fence), { fence });
      if (row === undefined) {
        // Cancelled meanwhile, or not due yet: it may have been waiting for an attempt when its holder died.
        const at = nextAttempt.get(place.dispatch_id)?.next_attempt_at;
        return typeof at === "number" ? waitFor(place, at) : ended;
      }
      const stop = linkSignals([tenure, stopping]);
      return await work({ row, tenure, stop, releaseSlot, isCancelled: false }, handlers);
    } catch {
      // The store cannot be written, or the lease is gone; then the line is closed, and this goes nowhere.
      return tenure.aborted ? ended : { retryAt: time.now() + limits.backoffMs };
    }
  }

  async function beginAlone(
    place: DispatchPlace,
    handlers: EngineHandlers,
    releaseSlot: Attempt["releaseSlot"],
  ): Promise<WorkEnd> {
    const { dispatch_id: id } = place;
    if (risky !== undefined) return waitFor(place, time.now() + riskyPauseMs);
    risky = id;
    const release = (): void => {
      if (risky === id) risky = undefined;
    };
    // Work that waits for an approval cannot crash the process, and may wait for days.
    const releasing = (): (() => void) => {
      release();
      return releaseSlot();
    };
    return await begin(place, handlers, releasing).finally(release);
  }

  /** In a transaction. */
  function takeOne({ dispatch_id }: DispatchPlace, fence: number): DispatchRow | undefined {
    return claim.get(fence, clock.now(), dispatch_id, time.now());
  }

  function waitFor(place: DispatchPlace, retryAt: number): WorkEnd {
    retrying.set(place.dispatch_id, place);
    return { retryAt };
  }

  async function work(attempt: Attempt, handlers: EngineHandlers): Promise<WorkEnd> {
    running.set(attempt.row.dispatch_id, attempt);
    try {
      await pace();
      return await settle(attempt, await run(attempt, handlers), handlers);
    } finally {
      running.delete(attempt.row.dispatch_id);
      attempt.stop.unlink();
    }
  }

  async function settle(attempt: Attempt, outcome: Outcome, handlers: EngineHandlers): Promise<WorkEnd> {
    // Until the store can be written again: what was done must not be done twice for want of a note.
    for (;;) {
      if (attempt.tenure.aborted) return ended;
      try {
        return await write(attempt, outcome, handlers);
      } catch (error) {
        if (isLost(error) || draining.aborted) return ended;
        const early = linkSignals([attempt.tenure, draining]);
        await clock.sleep(limits.backoffMs, early.signal).catch(() => undefined);
        early.unlink();
      }
    }
  }

  async function run(attempt: Attempt, handlers: EngineHandlers): Promise<Outcome> {
    const { row, stop, releaseSlot } = attempt;
    try {
      const { signal } = stop;
      const { dispatch_id: id, attempts, fence } = row;
      const context = {
        id,
        attempt: attempts,
        fence,
        signal,
        releaseSlot,
        checkFence: fenceCheck(base, fence),
      };
      const result = await handlers.dispatch(context, toRequest(row));
      // A result that is no JSON is the handler's failure, and found out here.
      return { kind: "completed", result: JSON.stringify(result) === undefined ? undefined : result };
    } catch (error) {
      return { kind: "thrown", error };
    }

    function toRequest(row: DispatchRow): AdmitRequest {
      const { agent, instance_id, session, idempotency_key, owner, trace } = row;
      const asked = { ...principalOf(owner), ...fromStoredTrace(trace) };
      const request = { agent, instance_id, session, input: blobs.load(row.input), ...asked };
      return idempotency_key === null ? request : { ...request, idempotency_key };
    }
  }

  async function write(attempt: Attempt, outcome: Outcome, handlers: EngineHandlers): Promise<WorkEnd> {
    const { row } = attempt;
    const { fence } = row;
    if (outcome.kind === "completed") {
      const { result } = outcome;
      return await end("completed", result === undefined ? null : await blobs.store(result), null);
    }
    const { error } = outcome;
    const text = JSON.stringify(toEventError(error, handlers.causeOf));
    if (attempt.isCancelled) return await end("cancelled", null, null);
    if (stopping.aborted) {
      await base.commit(() => requeue.run(1, null, row.error, row.dispatch_id, fence), { fence });
      return ended;
    }
    if (isOutage(error, row.dispatch_id, handlers)) return await requeueUntil(outageEnd(row), 1);
    outages.delete(row.dispatch_id);
    const mayRetry = row.attempts < limits.attempts && isRetryable(handlers, error);
    if (!mayRetry) return await end("failed", null, text);
    return await requeueUntil(time.now() + delay(row.attempts, error), 0);

    async function requeueUntil(at: number, uncounted: 0 | 1): Promise<WorkEnd> {
      const write = (): number => requeue.run(uncounted, at, text, row.dispatch_id, fence);
      const isBack = await base.commit(write, { fence });
      // No row was given back: a caller cancelled the dispatch while the attempt was failing.
      return isBack > 0 ? waitFor(row, at) : await end("cancelled", null, null);
    }

    async function end(status: string, result: string | null, why: string | null): Promise<WorkEnd> {
      await base.commit(() => finish.get(clock.now(), status, result, why, row.dispatch_id, fence), {
        fence,
      });
      outages.delete(row.dispatch_id);
      options.ended(row.dispatch_id);
      return ended;
    }
  }

  function outageEnd({ dispatch_id: id }: DispatchRow): number {
    const times = outages.get(id) ?? 0;
    outages.set(id, times + 1);
    return Math.ceil(time.now() + outagePause(times));
  }

  /** Doubled each time, between half and the whole of it, and no less than the error asks for. */
  function delay(attempts: number, error: unknown): number {
    const whole = Math.min(limits.longestBackoffMs, limits.backoffMs * 2 ** (attempts - 1));
    const asked = error instanceof KitError ? error.meta?.retry_after_s : undefined;
    const least =
      typeof asked === "number" && asked > 0 ? Math.min(asked * 1_000, limits.longestBackoffMs) : 0;
    return Math.ceil(Math.max(least, whole * (0.5 + Math.random() / 2)));
  }

  return {
    toWork: (place, handlers, isRisky = false) => ({
      id: place.dispatch_id,
      line: lineOf(place),
      owner: place.owner,
      begin: (releaseSlot) => (isRisky ? beginAlone : begin)(place, handlers, releaseSlot),
    }),
    cancel(dispatchId) {
      const attempt = running.get(dispatchId);
      if (attempt === undefined) return;
      attempt.isCancelled = true;
      attempt.stop.abort(cancelled());
    },
    leaveCancelled() {
      for (const [id, place] of retrying) {
        if (nextAttempt.get(id) !== undefined) continue;
        retrying.delete(id);
        base.lines.leave({ id, line: lineOf(place) });
      }
    },
    clear() {
      retrying.clear();
      outages.clear();
      risky = undefined;
    },
  };
}

function isRetryable(handlers: EngineHandlers, error: unknown): boolean {
  try {
    return (handlers.isRetryable ?? mayPass)(error);
  } catch {
    return false;
  }
}

function cancelled(): KitError {
  return new KitError({ code: "aborted", message: "The input was cancelled." });
}
