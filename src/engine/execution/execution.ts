import { linkSignals } from "../../base/abort.ts";
import { KitError } from "../../base/kit-error.ts";
import { isRetryableCode } from "../../protocol/error-code.ts";
import {
  type EngineHandlers,
  type EventLog,
  type RunContext,
  type RunEventBody,
  runStream,
} from "../contract.ts";
import { isOutage, outagePause } from "../embedded/work/outage.ts";
import { principalOf } from "../embedded/work/owner.ts";
import { fromStoredTrace } from "../embedded/work/stored-trace.ts";
import { type EngineBase, fenceCheck, isLost } from "../engine-base.ts";
import { checkJson } from "./check-json.ts";
import type { ExecutionCore, ExecutionHost } from "./execution-core.ts";
import { createReplay, type EntryEnd } from "./replay.ts";
import { createRunContext } from "./run-context.ts";
import type { RunRow } from "./run-journal.ts";
import { createDeliveries, createGuardedCalls } from "./run-promises.ts";
import { loadError } from "./steps.ts";
import { createWaits } from "./waits.ts";

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

/** A run at work in this process, from its first position to its end or its next long wait. */
export interface Execution {
  readonly end: Promise<ExecutionEnd>;
  cancel(): void;
  /** Leaves it behind; its signal fires with the reason. */
  leave(reason: unknown): void;
  /** A signal may have come for one of its waits. */
  checkWaits(): void;
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

export function createExecution(
  host: ExecutionHost,
  handlers: EngineHandlers,
  taken: Pick<RunContext, "fence" | "releaseSlot"> & { readonly run: RunRow; readonly lastEvent: number },
): Execution {
  const { base, journal } = host;
  const { run, fence } = taken;
  const entries = journal.load(run.id);
  const replay = createReplay(entries);
  const ending = Promise.withResolvers<ExecutionEnd>();
  const controller = new AbortController();
  const calls = createGuardedCalls(controller.signal);
  let ends = entries.reduce((count, { outcome }) => count + (outcome.state === "pending" ? 0 : 1), 0);
  let committedEnds = ends;
  let working = 0;
  let closed = false;
  /** Why it ends whatever its handler gives: it was cancelled, or has left its journal. */
  let verdict: ExecutionEnd | undefined;
  let callOffGrace: (() => void) | undefined;

  /** Calls back after a time; gives the way to call it off. */
  function after(ms: number, callback: () => void): () => void {
    const timer = new AbortController();
    base.clock.sleep(ms, timer.signal).then(callback, () => undefined);
    return () => timer.abort();
  }

  function close(end: ExecutionEnd, reason: unknown): void {
    if (closed) return;
    closed = true;
    deliveries.close();
    waits.close();
    callOffGrace?.();
    calls.close();
    controller.abort(reason);
    ending.resolve(end);
  }

  function settle(): void {
    const mayRest = !closed && verdict === undefined && working === 0 && !deliveries.busy && waits.size > 0;
    if (mayRest) callOffGrace ??= rest();
    else {
      callOffGrace?.();
      callOffGrace = undefined;
    }
  }

  /** Suspends it after its grace; gives the way to call that off. */
  function rest(): () => void {
    let callOff = after(leastGraceMs, () => {
      const keepSlot = base.lines.onSlotWanted(suspend);
      const stop = after(graceMs - leastGraceMs, suspend);
      callOff = () => {
        keepSlot();
        stop();
      };
      if (closed) callOff();
    });
    return () => callOff();
  }

  function suspend(): void {
    close({ kind: "suspended", wakeAt: waits.earliest }, leftBehind());
  }

  /**
   * Writes until the store can be written: what was done must not be done twice for want of a note. What
   * cannot be written at all ends the run. Of a run that was left behind no write comes back.
   */
  async function insist<Value>(write: () => Promise<Value>): Promise<Value> {
    while (!closed) {
      try {
        return await write();
      } catch (error) {
        if (isLost(error)) close({ kind: "left" }, error);
        else if (error instanceof KitError && isRetryableCode(error.code)) await waitForStore(retryMs);
        else close({ kind: "failed", error }, error);
      }
    }
    return await new Promise<never>(() => undefined);
  }

  async function waitForStore(ms: number): Promise<void> {
    const { draining } = base;
    // One that is cancelled cleans up, and goes on trying.
    const { signal } = controller;
    const early = linkSignals(signal.aborted ? [draining] : [draining, signal]);
    await base.clock.sleep(ms, early.signal).catch(() => undefined);
    early.unlink();
    if (draining.aborted) close({ kind: "left" }, draining.reason);
  }

  const core: ExecutionCore = {
    host,
    run,
    signal: controller.signal,
    handlers,
    guard: calls.guard,
    ask(kind, name) {
      // A run that has left its journal gets nowhere, also when its code looks past the error.
      if (verdict?.kind === "failed") throw verdict.error;
      try {
        return replay.ask(kind, name);
      } catch (error) {
        verdict ??= { kind: "failed", error };
        throw error;
      }
    },
    async atWork(work) {
      working += 1;
      settle();
      try {
        return await work();
      } finally {
        working -= 1;
        settle();
      }
    },
    commit: (write) =>
      insist(async () => {
        try {
          return await base.commit(write, { fence });
        } catch (error) {
          // The counts of a rolled-back transaction are undone with it.
          ends = committedEnds;
          throw error;
        } finally {
          committedEnds = ends;
        }
      }),
    async store(value) {
      return value === undefined ? null : await insist(() => base.blobs.store(value));
    },
    waitForStore,
    record(head, { state, value }) {
      ends += 1;
      const end: EntryEnd = { state, value, ended_as: ends };
      journal.end(run.id, head, end);
      return end;
    },
    deliver: ({ state, value, ended_as }) =>
      new Promise((resolve, refuse) => {
        deliveries.add(ended_as, () => {
          try {
            const loaded = value === null ? undefined : base.blobs.load(value);
            if (state === "done") resolve(loaded);
            else refuse(loadError(loaded));
          } catch (error) {
            refuse(error);
          }
        });
      }),
    settle,
  };
  const deliveries = createDeliveries({
    whenStalled: (callback) => after(stallMs, callback),
    onIdle: settle,
  });
  const waits = createWaits(core);
  const context: RunContext = createRunContext(core, {
    waits,
    fence,
    releaseSlot: taken.releaseSlot,
    checkFence: fenceCheck(base, fence),
    checkResult,
    emit: createRunEvents(host.events, {
      stream: runStream(run.run_id),
      last: taken.lastEvent,
      // A replay that does not come to its end says something new: that it was cancelled, does not match, or is over.
      isSilent: ({ type }) =>
        closed || (verdict === undefined && replay.behind && type !== "run_end" && type !== "run_start"),
    }),
  });

  function checkResult(value: unknown): void {
    if (verdict?.kind === "failed") throw verdict.error;
    replay.checkEnd();
    checkJson(value, "The result of the workflow", "internal_error");
  }

  async function work(): Promise<void> {
    try {
      const request = toRequest(base, run);
      const value: unknown = await handlers.run(context, request);
      if (closed || verdict !== undefined) return;
      checkResult(value);
      const result = await core.store(value);
      close({ kind: "completed", result }, ended());
    } catch (error) {
      // It goes on from its journal once the store is back.
      verdict ??= isOutage(error, run.run_id, handlers)
        ? { kind: "suspended", wakeAt: Math.ceil(base.time.now() + outagePause(4)) }
        : { kind: "failed", error };
    } finally {
      if (verdict !== undefined) close(verdict, ended());
    }
  }

  // It begins in a turn of its own, when whoever made it holds it.
  setImmediate(() => void work());

  return {
    end: ending.promise,
    cancel() {
      if (closed || verdict?.kind === "cancelled") return;
      verdict = { kind: "cancelled" };
      const reason = cancelled();
      controller.abort(reason);
      waits.close();
      calls.reject(reason);
      const callOff = after(unwindMs, () => close({ kind: "cancelled" }, reason));
      ending.promise.then(callOff, callOff);
    },
    leave: (reason) => close({ kind: "left" }, reason),
    checkWaits: waits.checkWaits,
  };
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
