import { linkSignals } from "../../../base/abort.ts";
import { KitError } from "../../../base/kit-error.ts";
import { isRetryableError } from "../../../protocol/error-code.ts";
import { runStream } from "../../../protocol/session-name.ts";
import type { EngineHandlers, RunContext, RunEventBody } from "../../contract.ts";
import type { EventLog } from "../../event-log-contract.ts";
import { type EngineBase, isLost } from "../engine-base.ts";
import { checkJson } from "../json-values.ts";
import { principalOf } from "../queue/owners.ts";
import { isOutage, outagePause } from "../retry-rules.ts";
import { fromStoredTrace } from "../stored-rows.ts";
import type { ExecutionCore, ExecutionHost } from "./execution-core.ts";
import { createRunContext, loadError } from "./run-context.ts";
import { createReplay, type EntryEnd, type Replay, type RunJournal } from "./run-journal.ts";
import { createDeliveries, createGuardedCalls, type Deliveries, type GuardedCalls } from "./run-promises.ts";
import type { RunRow } from "./run-store.ts";
import { Waits } from "./waits.ts";

/**
 * `suspended`: the run waits for longer than a moment; the promise of its handler never settles. `left`: this process
 * gives the run up, because the lease is lost or a drain has reached its deadline. `held`: the code of the run is missing, broken
 * or does not match the journal.
 */
export type ExecutionEnd =
  | { readonly kind: "completed"; readonly result: string | null }
  | { readonly kind: "failed"; readonly error: unknown }
  | { readonly kind: "cancelled" }
  | { readonly kind: "suspended"; readonly wakeAt: number | undefined }
  | { readonly kind: "held"; readonly problem: KitError }
  | { readonly kind: "left" };

/** A run that was claimed for an execution, and its journal. */
export interface TakenRun extends Pick<RunContext, "fence" | "releaseSlot"> {
  /** Called when the run begins to only wait, and when it works again. */
  readonly setIdle: (idle: boolean) => void;
  readonly run: RunRow;
  readonly journal: RunJournal;
  /** The index of the newest event of the run's stream. */
  readonly lastEvent: number;
}

/** A run that only waits is suspended after `graceMs`; if other work wants its slot, after `minGraceMs`. */
const graceMs = 1_000;
const minGraceMs = 50;
/** How long an end is held back for an earlier end that the run has not requested yet. */
const stallMs = 1_000;
/** The pause between two attempts to write to the store. */
const retryMs = 1_000;
/** How long a cancelled run can clean up. */
const unwindMs = 5_000;

/** A run that this process executes, from its first position to its end or its next long wait. The constructor starts it. */
export class Execution implements ExecutionCore {
  readonly host: ExecutionHost;
  readonly run: RunRow;
  readonly journal: RunJournal;
  readonly handlers: EngineHandlers;
  readonly end: Promise<ExecutionEnd>;
  readonly #claimed: TakenRun;
  readonly #replay: Replay;
  readonly #ending = Promise.withResolvers<ExecutionEnd>();
  readonly #controller = new AbortController();
  readonly signal: AbortSignal = this.#controller.signal;
  readonly #calls: GuardedCalls;
  readonly #deliveries: Deliveries;
  readonly #waits: Waits;
  /** Calls of its context that do work now. */
  #working = 0;
  /** How many of these have released the slot, because they wait for an approval or another run. */
  #released = 0;
  #isIdle = false;
  #closed = false;
  /** The end that is fixed whatever the handler returns: the run was cancelled, or the store is unavailable. */
  #verdict: ExecutionEnd | undefined;
  #callOffRest: (() => void) | undefined;
  /** Whether the run only waits, and stays in memory meanwhile. */
  #stays = false;
  /** Takes back the slot, which the run releases while it only waits for other runs: these can need it. */
  #takeSlot: (() => void) | undefined;

  constructor(host: ExecutionHost, handlers: EngineHandlers, claimed: TakenRun) {
    this.host = host;
    this.handlers = handlers;
    this.run = claimed.run;
    this.journal = claimed.journal;
    this.end = this.#ending.promise;
    this.#claimed = claimed;
    this.#calls = createGuardedCalls(this.#controller.signal);
    this.#deliveries = createDeliveries({
      whenStalled: (callback) => this.#after(stallMs, callback),
      onIdle: () => this.checkRest(),
    });
    // Ends are delivered in order, so the end of a skipped marker must count as delivered.
    this.#replay = createReplay(claimed.journal.entries, ({ ended_as }) =>
      this.#deliveries.add(ended_as, () => undefined),
    );
    this.#waits = new Waits(this);
    // The handler starts in the next turn of the event loop, once the caller has stored the execution.
    setImmediate(() => void this.#work());
  }

  get lastEnd(): number {
    return this.#deliveries.last;
  }

  cancel(): void {
    if (this.#closed || this.#verdict?.kind === "cancelled") return;
    this.#verdict = { kind: "cancelled" };
    const reason = cancelled();
    this.#controller.abort(reason);
    this.#waits.close();
    this.checkRest();
    this.#calls.reject(reason);
    const callOff = this.#after(unwindMs, () => this.#close({ kind: "cancelled" }, reason));
    this.end.then(callOff, callOff);
  }

  /** Ends the execution without an outcome; its signal fires with the reason. */
  leave(reason: unknown): void {
    this.#close({ kind: "left" }, reason);
  }

  /** Checks whether a signal has arrived for one of the run's waits. */
  checkWaits(): void {
    this.#waits.checkWaits();
  }

  readonly guard: ExecutionCore["guard"] = (call) => this.#calls.guard(call);

  readonly ask: Replay["ask"] = (kind, name) => {
    try {
      return this.#replay.ask(kind, name);
    } catch (error) {
      // A run that does not match its journal cannot continue, even if its code catches the error.
      throw this.#hold(error);
    }
  };

  readonly patched: Replay["patched"] = (id) => this.#replay.patched(id);

  readonly atWork = async <Value>(work: () => Promise<Value>): Promise<Value> => {
    const { leavesAtSteps, draining } = this.host.base;
    if (leavesAtSteps === true && draining.aborted) {
      this.leave(draining.reason);
      return await new Promise<never>(() => undefined);
    }
    this.#count(1, 0);
    try {
      return await work();
    } finally {
      this.#count(-1, 0);
    }
  };

  /** Repeats the call, so that no finished step is repeated because its record could not be written. */
  readonly insist = async <Value>(call: () => Promise<Value>): Promise<Value> => {
    while (!this.#closed) {
      try {
        return await call();
      } catch (error) {
        if (isLost(error)) this.#close({ kind: "left" }, error);
        else if (isRetryableError(error)) await this.waitForStore(retryMs);
        else this.#close({ kind: "failed", error }, error);
      }
    }
    return await new Promise<never>(() => undefined);
  };

  readonly store = async (value: unknown): Promise<string | null> =>
    value === undefined ? null : await this.insist(() => this.host.base.blobs.store(value));

  readonly waitForStore = async (ms: number): Promise<void> => {
    const { clock, draining } = this.host.base;
    // A cancelled run cleans up, and keeps trying.
    const early = linkSignals(this.signal.aborted ? [draining] : [draining, this.signal]);
    await clock.sleep(ms, early.signal).catch(() => undefined);
    early.unlink();
    if (draining.aborted) this.#close({ kind: "left" }, draining.reason);
  };

  readonly deliver = ({ state, value, ended_as }: EntryEnd): Promise<unknown> =>
    new Promise((resolve, refuse) => {
      this.#deliveries.add(ended_as, () => {
        try {
          const loaded = value === null ? undefined : this.host.base.blobs.load(value);
          if (state === "done") resolve(loaded);
          else refuse(loadError(loaded));
        } catch (error) {
          refuse(error);
        }
      });
    });

  readonly checkRest = (): void => {
    const onlyWaits =
      !this.#closed &&
      this.#verdict === undefined &&
      this.#working === 0 &&
      !this.#deliveries.busy &&
      this.#waits.size > 0;
    const stays = onlyWaits && this.#waits.hasSignals;
    if (!onlyWaits || stays !== this.#stays) {
      this.#callOffRest?.();
      this.#callOffRest = undefined;
    }
    this.#stays = stays;
    if (onlyWaits) {
      if (this.#waits.hasRuns) this.#takeSlot ??= this.#claimed.releaseSlot();
      this.#callOffRest ??= stays ? this.#stay() : this.#rest();
    } else {
      this.#takeSlot?.();
      this.#takeSlot = undefined;
    }
    this.#checkIdle();
  };

  async #work(): Promise<void> {
    const { host, run, handlers } = this;
    try {
      const value: unknown = await handlers.run(this.#createContext(), toRequest(host.base, run));
      if (this.#closed || this.#verdict !== undefined) return;
      this.#checkResult(value);
      const result = await this.store(value);
      this.#close({ kind: "completed", result }, ended());
    } catch (error) {
      // After an outage the run continues from its journal once the store is back.
      this.#verdict ??= isOutage(error, run.run_id, handlers)
        ? { kind: "suspended", wakeAt: Math.ceil(host.base.time.now() + outagePause(4)) }
        : { kind: "failed", error };
    } finally {
      if (this.#verdict !== undefined) this.#close(this.#verdict, ended());
    }
  }

  #createContext(): RunContext {
    const { fence, releaseSlot, lastEvent } = this.#claimed;
    const { run, host } = this;
    return createRunContext(this, {
      waits: this.#waits,
      fence,
      releaseSlot: () => {
        const takeSlot = releaseSlot();
        let isBack = false;
        this.#count(0, 1);
        return () => {
          if (!isBack) this.#count(0, -1);
          isBack = true;
          takeSlot();
        };
      },
      checkFence: () => host.base.checkLease(run, fence),
      checkResult: (value) => this.#checkResult(value),
      hold: (problem) => this.#hold(problem),
      emit: createRunEvents(host.events, {
        stream: runStream(run.run_id),
        last: lastEvent,
        isSilent: (event) => this.#isSilent(event),
      }),
    });
  }

  #count(working: number, released: number): void {
    this.#working += working;
    this.#released += released;
    this.checkRest();
  }

  /** Stores whether the run only waits, while it is in memory. */
  #checkIdle(): void {
    const isIdle = this.#stays || (this.#working > 0 && this.#released === this.#working);
    if (isIdle === this.#isIdle || this.#closed) return;
    this.#isIdle = isIdle;
    this.#claimed.setIdle(isIdle);
  }

  /** Whether an event is skipped, because an earlier attempt emitted it. The end of a run is always new. */
  #isSilent({ type }: RunEventBody): boolean {
    if (this.#closed) return true;
    const isReplay = this.#verdict === undefined && this.#replay.hasRecorded;
    return isReplay && type !== "run_end" && type !== "run_start";
  }

  #checkResult(value: unknown): void {
    try {
      this.#replay.checkEnd();
    } catch (error) {
      throw this.#hold(error);
    }
    checkJson(value, "The result of the workflow", "internal_error");
  }

  /** Ends the execution, unless the run was cancelled: it waits until its code is right again. Returns the problem. */
  #hold<Problem>(problem: Problem): Problem {
    if (problem instanceof KitError && this.#verdict?.kind !== "cancelled")
      this.#close({ kind: "held", problem }, problem);
    return problem;
  }

  /**
   * Keeps the run in memory, because it can go on by a signal of its code. When a drain begins, the run is requeued: the next
   * process runs the code again, which makes the signal again. Returns the function that prevents this.
   */
  #stay(): () => void {
    const { draining } = this.host.base;
    const leave = (): void => this.leave(draining.reason);
    if (draining.aborted) leave();
    else draining.addEventListener("abort", leave, { once: true });
    return () => draining.removeEventListener("abort", leave);
  }

  /** Suspends the run after its grace period; returns the function that prevents it. */
  #rest(): () => void {
    let callOff = this.#after(minGraceMs, () => {
      const suspend = (): void =>
        this.#close({ kind: "suspended", wakeAt: this.#waits.earliest }, leftBehind());
      const keepSlot = this.host.base.queue.onSlotWanted(suspend);
      // Runs that are in memory when the process dies count as its possible cause, so suspects leave it at once.
      const stop = this.#after(this.run.crashes > 0 ? 0 : graceMs - minGraceMs, suspend);
      callOff = () => {
        keepSlot();
        stop();
      };
      if (this.#closed) callOff();
    });
    return () => callOff();
  }

  #close(end: ExecutionEnd, reason: unknown): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#deliveries.close();
    this.#waits.close();
    this.#callOffRest?.();
    this.#calls.close();
    this.#controller.abort(reason);
    this.#ending.resolve(end);
  }

  /** Calls back after a time; returns the function that prevents it. */
  #after(ms: number, callback: () => void): () => void {
    const timer = new AbortController();
    this.host.base.clock.sleep(ms, timer.signal).then(callback, () => undefined);
    return () => timer.abort();
  }
}

function toRequest({ blobs }: EngineBase, { workflow, payload, idempotency_key, owner, trace }: RunRow) {
  const sender = { ...principalOf(owner), ...fromStoredTrace(trace) };
  const request = { workflow, payload: blobs.load(payload), ...sender };
  return idempotency_key === null ? request : { ...request, idempotency_key };
}

function cancelled(): KitError {
  return new KitError({ code: "aborted", message: "The run was cancelled." });
}

function leftBehind(): KitError {
  return new KitError({
    code: "aborted",
    message: "The run is suspended. It resumes at the time, or with the signal, that it waits for.",
    meta: { will_resume: true },
  });
}

function ended(): KitError {
  return new KitError({ code: "aborted", message: "The run has ended." });
}

interface RunEventOptions {
  readonly stream: string;
  /** The index of the newest event in the log. */
  readonly last: number;
  /** Whether an event is skipped, because it was emitted before or the execution has ended. */
  readonly isSilent: (event: RunEventBody) => boolean;
}

/** Returns the function that numbers the events of a run and appends them to its stream. */
function createRunEvents(events: EventLog, options: RunEventOptions): RunContext["emit"] {
  let index = options.last;
  return (event) => {
    if (options.isSilent(event)) return undefined;
    try {
      events.append(options.stream, { ...event, index: index + 1 });
    } catch (error) {
      // Another process writes the stream now; the run's signal is about to fire.
      if (error instanceof KitError && error.code === "lease_lost") return undefined;
      throw error;
    }
    index += 1;
    return index;
  };
}
