import { withDeadline } from "../../../base/abort.ts";
import type { Clock } from "../../../base/clock.ts";
import { KitError, type KitErrorInit } from "../../../base/kit-error.ts";
import { causeLine, type ErrorCause, fromErrorCause } from "../../../protocol/error-cause.ts";
import { isStoreUnavailable } from "../../../protocol/store-fault.ts";
import type { EngineHandlers, StepOptions, StepWork } from "../../contract.ts";
import { isJson } from "../check-json.ts";

/** The longest time between two attempts. */
const longestBackoffMs = 60_000;

export interface StepCall {
  readonly clock: Clock;
  readonly name: string;
  readonly idempotencyKey: string;
  /** The signal of the run. */
  readonly signal: AbortSignal;
  readonly options: StepOptions;
}

/**
 * Runs the work of a step until an attempt succeeds, or throws what the last one threw; that a store is away at once,
 * because it is not an attempt. When the run's signal fires, rejects at once with its reason, whether or not the work heeds it.
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
  const { clock, name, options, attempt, idempotencyKey } = call;
  const key = { idempotencyKey, idempotency_key: idempotencyKey };
  return withDeadline((signal) => work({ ...key, attempt, signal }), {
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

/** An error as the journal stores it. */
type StoredError = Omit<KitErrorInit, "cause"> & { readonly cause?: ErrorCause };

/**
 * The error that a step throws to its run: the `KitError` that its work threw, else an `internal_error`, because
 * the text of a foreign error may hold what no caller is to see. It goes into the cause and the hint.
 */
export function toStepError(error: unknown, what: string): KitError {
  if (error instanceof KitError) return error;
  return new KitError({ code: "internal_error", message: `${what} failed.`, cause: error });
}

/** An error as the journal keeps it; details that are no JSON are left out. */
export function storeError(error: KitError, causeOf: EngineHandlers["causeOf"]): StoredError {
  const { code, message, meta } = error;
  const cause = causeOf?.(error);
  const hint = error.hint ?? (cause === undefined ? undefined : causeLine(cause));
  return {
    code,
    message,
    ...(hint === undefined ? {} : { hint }),
    ...(meta === undefined || !isJson(meta) ? {} : { meta }),
    ...(cause === undefined ? {} : { cause }),
  };
}

/** The error that `storeError` was given. */
export function loadError(stored: unknown): KitError {
  const { cause, ...init } = stored as StoredError;
  return new KitError(cause === undefined ? init : { ...init, cause: fromErrorCause(cause) });
}
