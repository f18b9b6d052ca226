import { isoTime } from "../../../base/clock.ts";
import { KitError } from "../../../base/kit-error.ts";
import { isRetryableError } from "../../../protocol/error-code.ts";
import type { RunStatus } from "../../../protocol/run.ts";
import { runStream } from "../../../protocol/session-name.ts";
import type { EngineHandlers, WorkContext } from "../../contract.ts";
import type { EventLog } from "../../event-log-contract.ts";
import { isLost, type Lease } from "../engine-base.ts";
import type { Job, JobEnd } from "../queue/job.ts";
import { toEventError } from "../stored-rows.ts";
import { Execution, type ExecutionEnd } from "./execution.ts";
import type { ExecutionHost } from "./execution-core.ts";
import { isRisky, lineOfRun, type QueuedRun, type RunRow, type RunStore } from "./run-store.ts";

export interface RunJobsOptions {
  readonly store: RunStore;
  /** Called once the end of a run is on disk. */
  readonly ended: (runId: string) => void;
  /** Called when a run was suspended: it may wait for a time. */
  readonly waits: () => void;
  /** Called when a run was requeued. */
  readonly queued: () => void;
}

interface Outcome {
  readonly end: ExecutionEnd;
  /** `toStoredError`. */
  readonly error: string | null;
}

const over: JobEnd = { ended: true };
/** The pause after the store could not be written. */
const retryMs = 1_000;
/** The pause after the third crash; doubled after each further one. */
const riskyPauseMs = 500;

/** Executes queued runs, each to its end or to its next long wait. */
export class RunJobs {
  readonly #host: ExecutionHost;
  readonly #options: RunJobsOptions;
  readonly #executions = new Map<string, Execution>();
  /** Runs whose execution has ended and whose end is being recorded. */
  readonly #settling = new Set<string>();
  /** The runs that are being claimed, by id, and whether a caller has cancelled them meanwhile: their rows may not tell. */
  readonly #beginning = new Map<string, boolean>();

  constructor(host: ExecutionHost, options: RunJobsOptions) {
    this.#host = host;
    this.#options = options;
  }

  /** Running executions of this process, by run id. */
  get executions(): ReadonlyMap<string, Execution> {
    return this.#executions;
  }

  /** The runs that this process claims or executes, or whose end it is recording. */
  get runsAtWork(): readonly string[] {
    return [...this.#beginning.keys(), ...this.#executions.keys(), ...this.#settling];
  }

  /** Cancels the execution of a run, also one that is about to begin. */
  cancel(runId: string): void {
    const execution = this.#executions.get(runId);
    if (execution !== undefined) execution.cancel();
    else if (this.#beginning.has(runId)) this.#beginning.set(runId, true);
  }

  /** A queued run as a job of its line. */
  toJob(run: QueuedRun, handlers: EngineHandlers): Job {
    const { time } = this.#host.base;
    // The cause of the crashes may be something else: a risky run pauses, each time longer, so that it is not running when
    // the process dies of that again.
    const notBefore = isRisky(run) ? time.now() + riskyPauseMs * 2 ** (run.crashes - 3) : 0;
    return {
      id: run.run_id,
      line: lineOfRun(run),
      owner: run.owner,
      leavesLine: isRisky(run),
      begin: async (releaseSlot) =>
        time.now() < notBefore ? { retryAt: notBefore } : await this.#begin(run, handlers, releaseSlot),
    };
  }

  async #begin(
    queued: QueuedRun,
    handlers: EngineHandlers,
    releaseSlot: WorkContext["releaseSlot"],
  ): Promise<JobEnd> {
    const { base, events, journals } = this.#host;
    const { store } = this.#options;
    const lease = base.leaseOf(queued);
    const { fence, signal } = lease;
    if (signal.aborted) return over;
    this.#beginning.set(queued.run_id, false);
    try {
      const run = await store.claim(queued, fence);
      if (run === undefined) return over;
      const journal = await journals.open(run, fence);
      const stream = runStream(run.run_id);
      await events.begin(stream).catch(() => undefined);
      const lastEvent = await events.last(stream);
      let written = Promise.resolve();
      const setIdle = (idle: boolean): void => {
        // If the store is unavailable, a death of the process counts.
        written = written.then(() => store.setIdle(run, idle, fence)).catch(() => undefined);
      };
      const claimed = { run, journal, fence, lastEvent, releaseSlot, setIdle };
      const execution = new Execution(this.#host, handlers, claimed);
      if (signal.aborted) execution.leave(signal.reason);
      else if (base.stopping.aborted) execution.leave(base.stopping.reason);
      this.#executions.set(run.run_id, execution);
      if (run.cancelling || this.#beginning.get(run.run_id) === true) execution.cancel();
      this.#beginning.delete(run.run_id);
      // The execution has begun: whatever fails from here on must not begin another one beside it.
      const end = await execution.end.finally(() => {
        this.#settling.add(run.run_id);
        this.#executions.delete(run.run_id);
      });
      const outcome = { end, error: toStoredError(end, run, handlers), handlers };
      return await this.#settle(run, outcome, lease);
    } catch (error) {
      return signal.aborted || isLost(error) ? over : { retryAt: base.time.now() + retryMs };
    } finally {
      this.#beginning.delete(queued.run_id);
      this.#settling.delete(queued.run_id);
    }
  }

  /** Records the end of an execution; retries until the store can be written, because a finished run must not run again. */
  async #settle(
    run: RunRow,
    { handlers, ...outcome }: Outcome & { readonly handlers: EngineHandlers },
    { fence, signal }: Lease,
  ): Promise<JobEnd> {
    const { clock, draining } = this.#host.base;
    for (;;) {
      if (signal.aborted) return over;
      try {
        const status = await this.#write(run, outcome, fence);
        if (outcome.end.kind === "held" && status === "waiting") noteHeld(handlers, run, outcome.end.problem);
        if (status === "queued") this.#options.queued();
        else if (status === "waiting") this.#options.waits();
        else this.#options.ended(run.run_id);
        return over;
      } catch (error) {
        const passes = isRetryableError(error) && !isLost(error);
        if (!passes || draining.aborted) return over;
        await clock.sleep(retryMs, draining).catch(() => undefined);
      }
    }
  }

  /** Returns the run's status after the write. */
  async #write(run: RunRow, { end, error }: Outcome, fence: number): Promise<RunStatus> {
    const { store } = this.#options;
    if (end.kind === "left") return await store.putBack(run, { status: "queued" }, fence);
    if (end.kind === "suspended") {
      return await store.putBack(run, { status: "waiting", wakeAt: end.wakeAt, problem: null }, fence);
    }
    if (end.kind === "held") {
      return await store.putBack(run, { status: "waiting", wakeAt: undefined, problem: error }, fence);
    }
    const result = end.kind === "completed" ? end.result : null;
    await store.settle(run, { status: end.kind, result, error }, fence);
    return end.kind;
  }
}

function noteHeld({ onHeld }: EngineHandlers, { run_id, workflow }: RunRow, problem: KitError): void {
  try {
    onHeld?.(problem, { run_id, workflow });
  } catch {
    // A listener that throws must not end the work.
  }
}

/** The error in the record of a failed run, or the problem of a held one: its hint says what to do. */
function toStoredError(end: ExecutionEnd, { workflow }: RunRow, { causeOf }: EngineHandlers): string | null {
  if (end.kind === "held") {
    const { message, hint } = end.problem;
    return JSON.stringify({
      ...toEventError(end.problem, causeOf),
      message: hint === undefined ? message : `${message} ${hint}`,
    });
  }
  if (end.kind !== "failed") return null;
  const reported = toEventError(end.error, causeOf);
  const isOurs = end.error instanceof KitError && reported.message === end.error.message;
  const message = isOurs ? reported.message : `The workflow ${JSON.stringify(workflow)} failed.`;
  return JSON.stringify({ ...reported, message });
}

/**
 * Emits `run_end` for a run that was cancelled while it was not executed: its handler, which emits the event otherwise, is
 * not running. A process that does not hold the lease cannot write the event; then the stream just ends.
 */
export async function recordCancelled(events: EventLog, run: RunRow, now: number): Promise<void> {
  const { run_id, workflow, started_at, accepted_at } = run;
  const stream = runStream(run_id);
  try {
    const last = await events.last(stream);
    const [newest] = last === 0 ? [] : await events.read(stream, { after: last - 1 });
    if (newest?.type === "run_end" && newest.reason === "cancelled") return;
    events.append(stream, {
      type: "run_end",
      workflow,
      reason: "cancelled",
      is_error: true,
      is_aborted: true,
      duration_ms: now - (started_at ?? accepted_at),
      index: last + 1,
      timestamp: isoTime(now),
      instance_id: run_id,
      operation_id: run_id,
      run_id,
    });
  } catch {
    // The run is cancelled even without the event; its record has the status.
  }
}
