import type { Engine, RunRequest } from "../contract.ts";

/** Checks whether the engine takes a call now, before each call. */
type Guard = <Arguments extends unknown[], Result>(
  call: (...args: Arguments) => Promise<Result>,
) => (...args: Arguments) => Promise<Result>;

export type DispatchCalls = Pick<
  Engine,
  | "admit"
  | "getDispatch"
  | "listDispatches"
  | "awaitDispatch"
  | "cancelDispatch"
  | "listDeadLetters"
  | "redrive"
>;
export type RunCalls = Pick<
  Engine,
  "startRun" | "getRun" | "listRuns" | "awaitRun" | "retryRun" | "cancelRun" | "signal"
> &
  Required<Pick<Engine, "readJournal" | "resumeHeld" | "listWaitingSignals">>;
type ScheduleCalls = Pick<Engine, "putSchedule" | "deleteSchedule" | "listSchedules">;

/**
 * The calls of an engine that its parts answer. `accepting` guards those that accept work, `reading` the others, which an engine
 * can still answer while it drains.
 */
export function engineCalls(
  parts: {
    readonly dispatches: DispatchCalls;
    readonly runs: RunCalls;
    readonly schedules: ScheduleCalls;
    readonly outcomes: Pick<Engine, "once">;
  },
  { accepting, reading }: { readonly accepting: Guard; readonly reading: Guard },
): DispatchCalls & RunCalls & ScheduleCalls & Pick<Engine, "once"> {
  const { dispatches, runs, schedules, outcomes } = parts;
  /** Running work can still start other work while the engine drains: a refusal would change what it does. */
  const guardOf = ({ cause }: Pick<RunRequest, "cause">): Guard =>
    cause?.type === "run" || cause?.type === "prompt" ? reading : accepting;
  return {
    admit: async (request) => await guardOf(request)(() => dispatches.admit(request))(),
    once: accepting((key, work) => outcomes.once(key, work)),
    getDispatch: reading((id) => dispatches.getDispatch(id)),
    listDispatches: reading((filter) => dispatches.listDispatches(filter)),
    awaitDispatch: reading((id, options) => dispatches.awaitDispatch(id, options)),
    cancelDispatch: reading((id) => dispatches.cancelDispatch(id)),
    listDeadLetters: reading((filter) => dispatches.listDeadLetters(filter)),
    redrive: reading((id) => dispatches.redrive(id)),
    startRun: async (request) => await guardOf(request)(() => runs.startRun(request))(),
    getRun: reading((id) => runs.getRun(id)),
    readJournal: reading((id, page) => runs.readJournal(id, page)),
    listRuns: reading((filter) => runs.listRuns(filter)),
    listWaitingSignals: reading((listing) => runs.listWaitingSignals(listing)),
    awaitRun: reading((id, options) => runs.awaitRun(id, options)),
    retryRun: accepting((id) => runs.retryRun(id)),
    cancelRun: reading((id) => runs.cancelRun(id)),
    resumeHeld: reading(() => runs.resumeHeld()),
    signal: reading((id, signal) => runs.signal(id, signal)),
    putSchedule: reading((schedule) => schedules.putSchedule(schedule)),
    deleteSchedule: reading((name) => schedules.deleteSchedule(name)),
    listSchedules: reading(() => schedules.listSchedules()),
  };
}
