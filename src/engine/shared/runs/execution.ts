import { linkSignals } from "../../../base/abort.ts";
import { KitError } from "../../../base/kit-error.ts";
import { isRetryableCode } from "../../../protocol/error-code.ts";
import {
  type EngineHandlers,
  type EventLog,
  type RunContext,
  type RunEventBody,
  runStream,
} from "../../contract.ts";
import { checkJson } from "../check-json.ts";
import { type EngineBase, isLost } from "../engine-base.ts";
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
 * `suspended`: it waits for longer than a moment, and its promise was left behind. `left`: the lease is
 * lost, or a drain has waited long enough.
 */
export type ExecutionEnd =
  | { readonly kind: "completed"; readonly result: string | null }
  | { readonly kind: "failed"; readonly error: unknown }
  | { readonly kind: "cancelled" }
  | { readonly kind: "suspended"; readonly wakeAt: number | undefined }
  | { readonly kind: "left" };

/** A run that was claimed for an execution, and its journal. */
export interface TakenRun extends Pick<RunContext, "fence" | "releaseSlot"> {
  readonly run: RunRow;
  readonly journal: RunJournal;
  /** The index of the newest event of the run's stream. */
  readonly lastEvent: number;
}

/** How long a run may do nothing but wait before it is suspended; the first of it also when its slot is wanted. */
const graceMs = 1_000;
const leastGraceMs = 50;
/** How long an end is kept back for one before it that the run has not asked for. */
const stallMs = 1_000;
/** Between two attempts at a store that cannot be written. */
const retryMs = 1_000;
/** How long a cancelled run may take to clean up. */
const unwindMs = 5_000;

/** A run at work in this process, from its first position to its end or its next long wait. It begins when it is made. */
export class Execution implements ExecutionCore {
  readonly host: ExecutionHost;
  readonly run: RunRow;
  readonly journal: RunJournal;
  readonly handlers: EngineHandlers;
  readonly end: Promise<ExecutionEnd>;
  readonly #taken: TakenRun;
  readonly #replay: Replay;
  readonly #ending = Promise.withResolvers<ExecutionEnd>();
  readonly #controller = new AbortController();
  readonly #calls: GuardedCalls;
  readonly #deliveries: Deliveries;
  readonly #waits: Waits;
  /** Calls of its context that are at work. */
  #working = 0;
  #closed = false;
  /** Why it ends whatever its handler gives: it was cancelled, or has left its journal. */
  #verdict: ExecutionEnd | undefined;
  #callOffGrace: (() => void) | undefined;

  constructor(host: ExecutionHost, handlers: EngineHandlers, taken: TakenRun) {
    this.host = host;
    this.handlers = handlers;
    this.run = taken.run;
    this.journal = taken.journal;
    this.end = this.#ending.promise;
    this.#taken = taken;
    this.#calls = createGuardedCalls(this.#controller.signal);
    this.#deliveries = createDeliveries({
      whenStalled: (callback) => this.#after(stallMs, callback),
      onIdle: () => this.settle(),
    });
    // Later ends would wait for the end of a marker.
    this.#replay = createReplay(taken.journal.entries, ({ ended_as }) =>
      this.#deliveries.add(ended_as, () => undefined),
    );
    this.#waits = new Waits(this);
    // It begins in a turn of its own, when whoever made it holds it.
    setImmediate(() => void this.#work());
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  cancel(): void {
    if (this.#closed || this.#verdict?.kind === "cancelled") return;
    this.#verdict = { kind: "cancelled" };
    const reason = cancelled();
    this.#controller.abort(reason);
    this.#waits.close();
    this.#calls.reject(reason);
    const callOff = this.#after(unwindMs, () => this.#close({ kind: "cancelled" }, reason));
    this.end.then(callOff, callOff);
  }

  /** Leaves it behind; its signal fires with the reason. */
  leave(reason: unknown): void {
    this.#close({ kind: "left" }, reason);
  }

  /** A signal may have come for one of its waits. */
  checkWaits(): void {
    this.#waits.checkWaits();
  }

  readonly guard: ExecutionCore["guard"] = (call) => this.#calls.guard(call);

  readonly ask: Replay["ask"] = (kind, name) => {
    // A run that has left its journal gets nowhere, also when its code looks past the error.
    if (this.#verdict?.kind === "failed") throw this.#verdict.error;
    try {
      return this.#replay.ask(kind, name);
    } catch (error) {
      this.#verdict ??= { kind: "failed", error };
      throw error;
    }
  };

  readonly patched: Replay["patched"] = (id) => {
    if (this.#verdict?.kind === "failed") throw this.#verdict.error;
    return this.#replay.patched(id);
  };

  readonly atWork = async <Value>(work: () => Promise<Value>): Promise<Value> => {
    const { leavesAtSteps, draining } = this.host.base;
    if (leavesAtSteps === true && draining.aborted) {
      this.leave(draining.reason);
      return await new Promise<never>(() => undefined);
    }
    this.#working += 1;
    this.settle();
    try {
      return await work();
    } finally {
      this.#working -= 1;
      this.settle();
    }
  };

  /** Repeats the call, so that no finished step is done again because its record could not be written. */
  readonly insist = async <Value>(call: () => Promise<Value>): Promise<Value> => {
    while (!this.#closed) {
      try {
        return await call();
      } catch (error) {
        if (isLost(error)) this.#close({ kind: "left" }, error);
        else if (error instanceof KitError && isRetryableCode(error.code)) await this.waitForStore(retryMs);
        else this.#close({ kind: "failed", error }, error);
      }
    }
    return await new Promise<never>(() => undefined);
  };

  readonly store = async (value: unknown): Promise<string | null> =>
    value === undefined ? null : await this.insist(() => this.host.base.blobs.store(value));

  readonly waitForStore = async (ms: number): Promise<void> => {
    const { clock, draining } = this.host.base;
    // One that is cancelled cleans up, and goes on trying.
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

  readonly settle = (): void => {
    const mayRest =
      !this.#closed &&
      this.#verdict === undefined &&
      this.#working === 0 &&
      !this.#deliveries.busy &&
      this.#waits.size > 0;
    if (mayRest) this.#callOffGrace ??= this.#rest();
    else {
      this.#callOffGrace?.();
      this.#callOffGrace = undefined;
    }
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
      // It goes on from its journal once the store is back.
      this.#verdict ??= isOutage(error, run.run_id, handlers)
        ? { kind: "suspended", wakeAt: Math.ceil(host.base.time.now() + outagePause(4)) }
        : { kind: "failed", error };
    } finally {
      if (this.#verdict !== undefined) this.#close(this.#verdict, ended());
    }
  }

  #createContext(): RunContext {
    const { fence, releaseSlot, lastEvent } = this.#taken;
    const { run, host } = this;
    return createRunContext(this, {
      waits: this.#waits,
      fence,
      releaseSlot,
      checkFence: () => host.base.checkLease(run, fence),
      checkResult: (value) => this.#checkResult(value),
      emit: createRunEvents(host.events, {
        stream: runStream(run.run_id),
        last: lastEvent,
        isSilent: (event) => this.#isSilent(event),
      }),
    });
  }

  /** A replay that does not come to its end says something new: that it was cancelled, does not match, or is over. */
  #isSilent({ type }: RunEventBody): boolean {
    if (this.#closed) return true;
    const isReplay = this.#verdict === undefined && this.#replay.behind;
    return isReplay && type !== "run_end" && type !== "run_start";
  }

  #checkResult(value: unknown): void {
    if (this.#verdict?.kind === "failed") throw this.#verdict.error;
    this.#replay.checkEnd();
    checkJson(value, "The result of the workflow", "internal_error");
  }

  /** Suspends it after its grace; gives the way to call that off. */
  #rest(): () => void {
    let callOff = this.#after(leastGraceMs, () => {
      const suspend = (): void =>
        this.#close({ kind: "suspended", wakeAt: this.#waits.earliest }, leftBehind());
      const keepSlot = this.host.base.queue.onSlotWanted(suspend);
      const stop = this.#after(graceMs - leastGraceMs, suspend);
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
    this.#callOffGrace?.();
    this.#calls.close();
    this.#controller.abort(reason);
    this.#ending.resolve(end);
  }

  /** Calls back after a time; gives the way to call it off. */
  #after(ms: number, callback: () => void): () => void {
    const timer = new AbortController();
    this.host.base.clock.sleep(ms, timer.signal).then(callback, () => undefined);
    return () => timer.abort();
  }
}

function toRequest({ blobs }: EngineBase, { workflow, payload, idempotency_key, owner, trace }: RunRow) {
  const asked = { ...principalOf(owner), ...fromStoredTrace(trace) };
  const request = { workflow, payload: blobs.load(payload), ...asked };
  return idempotency_key === null ? request : { ...request, idempotency_key };
}

function cancelled(): KitError {
  return new KitError({ code: "aborted", message: "The run was cancelled." });
}

function leftBehind(): KitError {
  return new KitError({
    code: "aborted",
    message: "The run waits. It is taken up again when its time or its signal has come.",
    meta: { will_resume: true },
  });
}

function ended(): KitError {
  return new KitError({ code: "aborted", message: "The run has ended." });
}

interface RunEventOptions {
  readonly stream: string;
  /** The index of the newest event that the log has. */
  readonly last: number;
  /** Whether what is said now was said before, or comes too late. */
  readonly isSilent: (event: RunEventBody) => boolean;
}

/** Numbers the events of a run, and puts them into its stream. */
function createRunEvents(events: EventLog, options: RunEventOptions): RunContext["emit"] {
  let index = options.last;
  return (event) => {
    if (options.isSilent(event)) return undefined;
    try {
      events.append(options.stream, { ...event, index: index + 1 });
    } catch (error) {
      // Another process writes the stream now, and this run is about to learn of it by its signal.
      if (error instanceof KitError && error.code === "lease_lost") return undefined;
      throw error;
    }
    index += 1;
    return index;
  };
}
