import type { Clock } from "../../../base/clock.ts";
import { KitError } from "../../../base/kit-error.ts";
import { isStoreUnavailable } from "../../../protocol/store-fault.ts";
import type { StepOptions, StepWork } from "../../contract.ts";

/** The longest time between two attempts. */
const longestBackoffMs = 60_000;

export interface StepCall {
  readonly clock: Clock;
  readonly name: string;
  readonly idempotencyKey: string;
  /** Of the run. */
  readonly signal: AbortSignal;
  readonly options: StepOptions;
}

/**
 * Runs the work of a step until an attempt succeeds, or throws what the last one threw; that a store is away at once,
 * because it is no attempt. When the run's signal fires, rejects at once with its reason, whether or not the work heeds it.
 */
export async function attemptStep<Value>(work: StepWork<Value>, call: StepCall): Promise<Value> {
  const { attempts = 1, backoffMs = 500 } = call.options;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await attemptOnce(work, { ...call, attempt });
    } catch (error) {
      if (call.signal.aborted || attempt >= attempts || isStoreUnavailable(error)) throw error;
      await call.clock.sleep(Math.min(longestBackoffMs, backoffMs * 2 ** (attempt - 1)), call.signal);
    }
  }
}

function attemptOnce<Value>(
  work: StepWork<Value>,
  call: StepCall & { readonly attempt: number },
): Promise<Value> {
  const { signal: run, options, attempt, idempotencyKey: idempotency_key } = call;
  if (run.aborted) return Promise.reject(run.reason);
  const limit = options.timeoutMs === undefined ? undefined : limitTime(call, options.timeoutMs);
  const signal = limit?.signal ?? run;
  return new Promise<Value>((resolve, reject) => {
    const done = (): void => {
      signal.removeEventListener("abort", stop);
      limit?.clear();
    };
    const stop = (): void => {
      done();
      reject(signal.reason);
    };
    signal.addEventListener("abort", stop, { once: true });
    // Work that throws before it gives a promise rejects like any other.
    new Promise<Value>((give) => give(work({ idempotency_key, attempt, signal })))
      .then(resolve, reject)
      .finally(done);
  });
}

interface TimeLimit {
  readonly signal: AbortSignal;
  clear(): void;
}

/** Fires after the time, or with the run. */
function limitTime(call: StepCall, timeoutMs: number): TimeLimit {
  const own = new AbortController();
  const timer = new AbortController();
  const stop = (): void => own.abort(call.signal.reason);
  const clear = (): void => {
    call.signal.removeEventListener("abort", stop);
    timer.abort();
  };
  call.signal.addEventListener("abort", stop, { once: true });
  call.clock.sleep(timeoutMs, timer.signal).then(
    () => own.abort(timedOut(call.name, timeoutMs)),
    () => undefined,
  );
  return { signal: own.signal, clear };
}

function timedOut(name: string, timeoutMs: number): KitError {
  return new KitError({
    code: "unavailable",
    message: `Step ${JSON.stringify(name)} did not end within ${timeoutMs} ms.`,
  });
}
