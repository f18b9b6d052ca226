import { withDeadline } from "../../../base/abort.ts";
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
  const { clock, name, options, attempt, idempotencyKey: idempotency_key } = call;
  return withDeadline((signal) => work({ idempotency_key, attempt, signal }), {
    ms: options.timeoutMs,
    signal: call.signal,
    clock,
    onTimeout: () => timedOut(name, options.timeoutMs),
  });
}

function timedOut(name: string, timeoutMs: number | undefined): KitError {
  return new KitError({
    code: "unavailable",
    message: `Step ${JSON.stringify(name)} did not end within ${timeoutMs} ms.`,
  });
}
