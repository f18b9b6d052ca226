import { type LinkedSignals, linkSignals } from "../../../base/abort.ts";
import { attempt } from "../../../base/attempt.ts";
import { KitError } from "../../../base/kit-error.ts";
import { isRetryableError } from "../../../protocol/error-code.ts";
import type { EventError } from "../../../protocol/event.ts";
import type { SessionKey } from "../../../protocol/session-entry.ts";
import type { AdmitRequest, EngineHandlers, InputEnd, WorkContext } from "../../contract.ts";
import { type CountedAttempts, recount } from "../counted-attempts.ts";
import { type EngineBase, type EngineLimits, isLost, type Lease } from "../engine-base.ts";
import type { Job, JobEnd } from "../queue/job.ts";
import { lineOf, principalOf } from "../queue/owners.ts";
import { isOutage, outagePause } from "../retry-rules.ts";
import { fromStoredTrace, parseStored, toEventError } from "../stored-rows.ts";
import {
  type DispatchEnd,
  type DispatchRow,
  type DispatchStore,
  diedText,
  type QueuedDispatch,
  type Requeue,
} from "./dispatch-store.ts";
import { createPace } from "./pace.ts";

export interface AttemptOptions {
  readonly limits: EngineLimits;
  /** Called once a settlement is on disk. */
  ended(dispatchId: string): void;
}

interface Attempt {
  row: DispatchRow;
  /** The lease under which the attempt began. */
  readonly lease: Lease;
  readonly stop: LinkedSignals;
  readonly releaseSlot: WorkContext["releaseSlot"];
  isCancelled: boolean;
  /** The newest plan that the handler asked for. */
  planned: { readonly error: unknown; readonly plan: Plan } | undefined;
}

/** The step after a failed attempt; `at`: when the next attempt is due. */
type Plan =
  | { readonly kind: "retry"; readonly at: number; readonly counted: CountedAttempts | undefined }
  | { readonly kind: "end" };

type Outcome =
  | { readonly kind: "completed"; readonly result: unknown }
  | { readonly kind: "thrown"; readonly error: unknown }
  | { readonly kind: "spent" }
  | { readonly kind: "cancelled" };

const ended: JobEnd = { ended: true };

/** Attempts that begin in one turn of the event loop. */
const perTurn = 8;
/** The pause before an input is claimed again that nothing keeps from it. */
const comeBackMs = 100;
/** How often a risky input checks whether it can begin. */
const riskyPauseMs = 25;

/** Runs attempts at accepted inputs and settles them. */
export class DispatchAttempts {
  readonly #base: EngineBase;
  readonly #store: DispatchStore;
  readonly #options: AttemptOptions;
  readonly #pace = createPace(perTurn);
  readonly #running = new Map<string, Attempt>();
  /** Inputs with an attempt that runs or is being claimed. */
  readonly #begun = new Set<QueuedDispatch>();
  /** The ids of inputs that a caller has cancelled while they were being claimed: their rows may not tell. */
  readonly #cancelledEarly = new Set<string>();
  readonly #retrying = new Map<string, QueuedDispatch>();
  /** Attempts in a row that ended because a store is unavailable, by input. */
  readonly #outages = new Map<string, number>();
  /** The risky input that runs now. */
  #risky: string | undefined;

  constructor(base: EngineBase, store: DispatchStore, options: AttemptOptions) {
    this.#base = base;
    this.#store = store;
    this.#options = options;
  }

  /**
   * An accepted input as a job of its line. Risky inputs, during which the process has died several times, run one at a
   * time: so the input that kills the process uses up its attempts without those of the others.
   */
  toJob(dispatch: QueuedDispatch, handlers: EngineHandlers, isRisky = false): Job {
    let lease: Lease | undefined;
    return {
      id: dispatch.dispatch_id,
      line: lineOf(dispatch),
      owner: dispatch.owner,
      joins: Boolean(dispatch.joins),
      begin: (releaseSlot) => {
        lease = this.#base.leaseOf(dispatch);
        return isRisky
          ? this.#beginAlone(dispatch, handlers, releaseSlot)
          : this.#begin(dispatch, handlers, releaseSlot);
      },
      isStale: () => lease?.signal.aborted === true,
    };
  }

  /** Aborts the running attempt of a cancelled dispatch, or ends a dispatch that waits for its next attempt. */
  cancel(id: string): void {
    const attempt = this.#running.get(id);
    const dispatch = this.#retrying.get(id);
    if (dispatch !== undefined) this.#base.queue.hasten({ id, line: lineOf(dispatch) });
    if (attempt === undefined) {
      if ([...this.#begun].some(({ dispatch_id }) => dispatch_id === id)) this.#cancelledEarly.add(id);
      return;
    }
    attempt.isCancelled = true;
    attempt.stop.abort(new KitError({ code: "aborted", message: "The input was cancelled." }));
  }

  /** The inputs that wait for their next attempt. */
  retrying(): readonly QueuedDispatch[] {
    return [...this.#retrying.values()];
  }

  /** The attempts that run in this process. */
  running(): readonly DispatchRow[] {
    return [...this.#running.values()].map(({ row }) => row);
  }

  /** The sessions whose attempts run, or are being claimed. */
  get sessionsAtWork(): Iterable<SessionKey> {
    return this.#begun;
  }

  /** Removes an input that is no longer queued from its line. */
  leave(dispatch: Parameters<typeof lineOf>[0] & Pick<QueuedDispatch, "dispatch_id">): void {
    this.#retrying.delete(dispatch.dispatch_id);
    this.#base.queue.leave({ id: dispatch.dispatch_id, line: lineOf(dispatch) });
  }

  /** Forgets the inputs that wait for their next attempt. */
  clear(): void {
    this.#retrying.clear();
    this.#outages.clear();
    this.#risky = undefined;
  }

  async #begin(
    dispatch: QueuedDispatch,
    handlers: EngineHandlers,
    releaseSlot: Attempt["releaseSlot"],
  ): Promise<JobEnd> {
    const lease = this.#base.leaseOf(dispatch);
    this.#retrying.delete(dispatch.dispatch_id);
    if (lease.signal.aborted) return ended;
    this.#begun.add(dispatch);
    const end = await this.#attempt({ dispatch, lease, releaseSlot }, handlers);
    this.#begun.delete(dispatch);
    this.#cancelledEarly.delete(dispatch.dispatch_id);
    const isLostAndRegained = lease.signal.aborted && !this.#base.leaseOf(dispatch).signal.aborted;
    // The rows were loaded again while this input was the head of its line, so it stays the first.
    return isLostAndRegained ? this.#waitFor(dispatch, this.#base.time.now()) : end;
  }

  async #attempt(
    {
      dispatch,
      lease,
      releaseSlot,
    }: Pick<Attempt, "lease" | "releaseSlot"> & { readonly dispatch: QueuedDispatch },
    handlers: EngineHandlers,
  ): Promise<JobEnd> {
    try {
      const row = await this.#store.claim(dispatch, lease.fence);
      if (row === undefined) {
        // The input was cancelled meanwhile, or is not due yet: it may have waited for an attempt when its worker died.
        return await this.#comeBack(dispatch, lease);
      }
      if (lease.signal.aborted) return ended;
      const stop = linkSignals([lease.signal, this.#base.stopping]);
      const isCancelled = this.#cancelledEarly.delete(row.dispatch_id);
      return await this.#work({ row, lease, stop, releaseSlot, isCancelled, planned: undefined }, handlers);
    } catch (error) {
      // Either the store cannot be written, or the lease is lost; in the second case the line is closed.
      if (lease.signal.aborted || isLost(error)) return ended;
      return { retryAt: this.#base.time.now() + this.#options.limits.backoffMs };
    }
  }

  async #beginAlone(
    dispatch: QueuedDispatch,
    handlers: EngineHandlers,
    releaseSlot: Attempt["releaseSlot"],
  ): Promise<JobEnd> {
    const { dispatch_id: id } = dispatch;
    if (this.#risky !== undefined) return this.#waitFor(dispatch, this.#base.time.now() + riskyPauseMs);
    this.#risky = id;
    const release = (): void => {
      if (this.#risky === id) this.#risky = undefined;
    };
    // Work that waits for an approval cannot crash the process, and may wait for days.
    const releasing = (): (() => void) => {
      release();
      return releaseSlot();
    };
    return await this.#begin(dispatch, handlers, releasing).finally(release);
  }

  /**
   * Keeps a queued input at the head of its line, under a lease that still holds: a crash of the database can have lost its claim, and
   * the next input of its session must not overtake it.
   */
  async #comeBack(dispatch: QueuedDispatch, lease: Lease): Promise<JobEnd> {
    const at = await this.#store.dueAt(dispatch.dispatch_id);
    if (at === undefined || lease.signal.aborted) return ended;
    return this.#waitFor(dispatch, at ?? this.#base.time.now() + comeBackMs);
  }

  #waitFor(dispatch: QueuedDispatch, retryAt: number): JobEnd {
    this.#retrying.set(dispatch.dispatch_id, dispatch);
    return { retryAt };
  }

  async #work(attempt: Attempt, handlers: EngineHandlers): Promise<JobEnd> {
    this.#running.set(attempt.row.dispatch_id, attempt);
    try {
      await this.#pace();
      return await this.#settle(attempt, await this.#run(attempt, handlers), handlers);
    } finally {
      this.#running.delete(attempt.row.dispatch_id);
      attempt.stop.unlink();
    }
  }

  async #run(attempt: Attempt, handlers: EngineHandlers): Promise<Outcome> {
    const { row, stop, releaseSlot } = attempt;
    try {
      if (row.cancelling || attempt.isCancelled) return { kind: "cancelled" };
      if (await this.#isSpent(attempt, handlers)) return { kind: "spent" };
      const { dispatch_id: id, attempts, fence } = row;
      const checkFence = (): Promise<void> => this.#base.checkLease(row, fence);
      let written = Promise.resolve();
      const setIdle = (idle: boolean): void => {
        // If the store is unavailable, a death of the process counts.
        written = written.then(() => this.#store.setIdle(row, idle)).catch(() => undefined);
      };
      const planRetry: WorkContext["planRetry"] = async (error) => {
        const plan = await this.#plan(attempt, error, handlers);
        attempt.planned = { error, plan };
        return plan.kind === "end" ? undefined : { delayMs: plan.at - this.#base.time.now() };
      };
      const { signal } = stop;
      const context = { id, attempt: attempts, fence, signal, releaseSlot, setIdle, checkFence, planRetry };
      const result = await handlers.dispatch(context, this.#toRequest(row));
      // A result that is not JSON makes the attempt fail here.
      return { kind: "completed", result: JSON.stringify(result) === undefined ? undefined : result };
    } catch (error) {
      return { kind: "thrown", error };
    }
  }

  /** Whether the process has died during too many attempts without progress. */
  async #isSpent(attempt: Attempt, handlers: EngineHandlers): Promise<boolean> {
    const { row } = attempt;
    if (row.spent === 0) return false;
    const counted = await this.#recount(row, handlers);
    if (counted.progress > row.progress) await this.#store.recount(row, counted);
    attempt.row = { ...row, ...counted };
    return counted.spent >= this.#options.limits.attempts;
  }

  async #recount(row: DispatchRow, { progressOf }: EngineHandlers, failed = 0): Promise<CountedAttempts> {
    const progress = (await progressOf?.(row, row.dispatch_id)) ?? 0;
    return recount({ spent: row.spent + failed, progress: row.progress }, progress);
  }

  #toRequest(row: DispatchRow): AdmitRequest {
    const { agent, instance_id, session, idempotency_key, owner, trace } = row;
    const sender = { ...principalOf(owner), ...fromStoredTrace(trace) };
    const request = { agent, instance_id, session, input: this.#base.blobs.load(row.input), ...sender };
    return idempotency_key === null ? request : { ...request, idempotency_key };
  }

  async #settle(attempt: Attempt, outcome: Outcome, handlers: EngineHandlers): Promise<JobEnd> {
    const { clock, draining } = this.#base;
    // Repeats until the store can be written: the work must not be done again because its end was not recorded.
    for (;;) {
      if (attempt.lease.signal.aborted) return ended;
      try {
        return await this.#write(attempt, outcome, handlers);
      } catch (error) {
        if (draining.aborted) return ended;
        if (isLost(error))
          return await this.#comeBack(attempt.row, attempt.lease).catch(() =>
            this.#waitFor(attempt.row, this.#base.time.now() + this.#options.limits.backoffMs),
          );
        const early = linkSignals([attempt.lease.signal, draining]);
        await clock.sleep(this.#options.limits.backoffMs, early.signal).catch(() => undefined);
        early.unlink();
      }
    }
  }

  async #write(attempt: Attempt, outcome: Outcome, handlers: EngineHandlers): Promise<JobEnd> {
    const { blobs, stopping } = this.#base;
    const { row } = attempt;
    if (outcome.kind === "completed") {
      const { result } = outcome;
      const stored = result === undefined ? null : await blobs.store(result);
      return await this.#end(row, { status: "completed", result: stored, error: null });
    }
    if (outcome.kind === "spent")
      return await this.#endEarly(row, { status: "failed", error: diedText, unbegun: true }, handlers);
    // An attempt counts if the row did not tell of the cancellation when it was claimed.
    const unbegun = !row.cancelling;
    if (outcome.kind === "cancelled")
      return await this.#endEarly(row, { status: "cancelled", error: row.error, unbegun }, handlers);
    if (attempt.isCancelled) return await this.#endEarly(row, { status: "cancelled", error: null }, handlers);
    const { error } = outcome;
    if (stopping.aborted) {
      await this.#store.requeue(row, { counted: undefined, at: null, error: row.error });
      return ended;
    }
    const text = JSON.stringify(toEventError(error, handlers.causeOf));
    const plan = plannedFor(attempt, error) ?? (await this.#plan(attempt, error, handlers));
    return plan.kind === "end"
      ? await this.#endEarly(row, { status: "failed", error: text }, handlers)
      : await this.#requeue(row, { counted: plan.counted, at: plan.at, error: text }, handlers);
  }

  async #plan({ row }: Attempt, error: unknown, handlers: EngineHandlers): Promise<Plan> {
    if (isOutage(error, row.dispatch_id, handlers))
      return { kind: "retry", at: this.#outageEnd(row), counted: undefined };
    this.#outages.delete(row.dispatch_id);
    if (!mayRetry(handlers, error)) return { kind: "end" };
    const counted = await this.#recount(row, handlers, 1);
    if (counted.spent >= this.#options.limits.attempts) return { kind: "end" };
    return { kind: "retry", at: this.#base.time.now() + this.#delay(counted.spent, error), counted };
  }

  async #requeue(
    row: DispatchRow,
    how: Requeue & { readonly at: number },
    handlers: EngineHandlers,
  ): Promise<JobEnd> {
    if (await this.#store.requeue(row, how)) return this.#waitFor(row, how.at);
    // A caller cancelled the dispatch while the attempt was failing.
    return await this.#endEarly(row, { status: "cancelled", error: null }, handlers);
  }

  /** Ends an input that is not completed, after the handlers have noted it: no attempt may have done so. */
  async #endEarly(
    row: DispatchRow,
    end: Omit<DispatchEnd, "result"> & Pick<InputEnd, "status">,
    handlers: EngineHandlers,
  ): Promise<JobEnd> {
    const { dispatch_id: id, fence } = row;
    const { status, error, unbegun } = end;
    try {
      const attempts = row.attempts - Number(unbegun === true);
      const failure =
        status === "failed" && error !== null ? { error: parseStored(error) as EventError } : {};
      await handlers.onInputEnd?.({ id, fence, attempts, status, ...failure }, this.#toRequest(row));
    } catch (thrown) {
      // The caller tries again. Any other error must not keep the input open.
      if (isOutage(thrown, id, handlers)) throw thrown;
    }
    return await this.#end(row, { ...end, result: null });
  }

  async #end(row: DispatchRow, end: DispatchEnd): Promise<JobEnd> {
    await this.#store.finish(row, end);
    this.#outages.delete(row.dispatch_id);
    this.#options.ended(row.dispatch_id);
    return ended;
  }

  #outageEnd({ dispatch_id: id }: DispatchRow): number {
    const times = this.#outages.get(id) ?? 0;
    this.#outages.set(id, times + 1);
    return Math.ceil(this.#base.time.now() + outagePause(times));
  }

  /** The pause before the next attempt: doubled each time, of which half is random, and at least the error's `retry_after_s`. */
  #delay(spent: number, error: unknown): number {
    const { longestBackoffMs, backoffMs } = this.#options.limits;
    const delayMs = Math.min(longestBackoffMs, backoffMs * 2 ** (spent - 1));
    const retryAfterS = error instanceof KitError ? error.meta?.retry_after_s : undefined;
    const hasDelay = typeof retryAfterS === "number" && retryAfterS > 0;
    const least = hasDelay ? Math.min(retryAfterS * 1_000, longestBackoffMs) : 0;
    return Math.ceil(Math.max(least, delayMs * (0.5 + Math.random() / 2)));
  }
}

/** The plan for an error, which the handler may have copied without its secrets since it asked. */
function plannedFor({ planned }: Attempt, error: unknown): Plan | undefined {
  if (planned === undefined || planned.error === error) return planned?.plan;
  const isCopy =
    planned.error instanceof KitError && error instanceof KitError && planned.error.code === error.code;
  return isCopy ? planned.plan : undefined;
}

/** Asks the rule of the handlers; one that throws allows no retry. */
function mayRetry({ isRetryable = isRetryableError }: EngineHandlers, error: unknown): boolean {
  return attempt(() => isRetryable(error), false);
}
