import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import { withDeadline } from "../../../base/abort.ts";
import type { Clock } from "../../../base/clock.ts";
import { KitError, type KitErrorInit } from "../../../base/kit-error.ts";
import type { DispatchReceipt } from "../../../protocol/dispatch.ts";
import { causeLine, type ErrorCause, fromErrorCause } from "../../../protocol/error-cause.ts";
import { isPermanent } from "../../../protocol/error-code.ts";
import { outageOf } from "../../../protocol/outage.ts";
import type { AwaitedRun, EngineHandlers, RunContext, StepOptions, StepWork } from "../../contract.ts";
import { checkJson, isJson, isName } from "../json-values.ts";
import { principalOf } from "../queue/owners.ts";
import { isOutage, outagePause } from "../retry-rules.ts";
import type { ExecutionCore } from "./execution-core.ts";
import type { CallKind } from "./run-journal.ts";
import type { Waits } from "./waits.ts";

export interface RunContextParts
  extends Pick<RunContext, "fence" | "releaseSlot" | "checkFence" | "emit" | "checkResult" | "hold"> {
  readonly waits: Waits;
}

/** The step whose work is running: calls of the context inside that work belong to the step, and use no position. */
interface OpenStep {
  readonly key: string;
  /** The number of such calls. */
  calls: number;
}

interface Call {
  readonly kind: CallKind;
  readonly name: string;
  /** The run whose end the call waits for. */
  readonly awaited?: AwaitedRun;
}

/** Creates the context of a run. */
export function createRunContext(core: ExecutionCore, parts: RunContextParts): RunContext {
  const { run, host } = core;
  const { clock } = host.base;
  const { waits, ...contextParts } = parts;
  const openStep = new AsyncLocalStorage<OpenStep>();

  /** Moves to the next position. Returns or throws its recorded outcome; otherwise runs `work` and records the outcome. */
  function journaled(
    { kind, name, awaited }: Call,
    work: (idempotencyKey: string) => Promise<unknown>,
  ): Promise<unknown> {
    const step = openStep.getStore();
    if (step !== undefined) {
      // A replay does not run the work of an ended step again, so the call must not use a position. The same attempt
      // always has the same keys.
      step.calls += 1;
      const key = `${step.key}:${step.calls}`;
      return awaited === undefined ? work(key) : awaitInStep(awaited).then(() => work(key));
    }
    return core.guard(async () => {
      const made_after = core.lastEnd;
      const { position, recorded } = core.ask(kind, name);
      const outcome = recorded?.outcome;
      if (outcome !== undefined && outcome.state !== "pending") return await core.deliver(outcome);
      const head = { position, kind, name, made_after };
      if (awaited !== undefined) await waits.forRun(head, awaited, outcome === undefined);
      return await core.atWork(async () => {
        const { state, value } = await attempt(work, `${run.run_id}:${position}`);
        const stored = await core.store(value);
        return await core.deliver(await core.insist(() => core.journal.end(head, { state, value: stored })));
      });
    });

    async function attempt(work: (key: string) => Promise<unknown>, key: string) {
      for (let outages = 0; ; outages += 1) {
        try {
          const value = await work(key);
          checkJson(value, `The result of ${kind} ${JSON.stringify(name)}`, "internal_error");
          return { state: "done", value } as const;
        } catch (error) {
          // An error after the run was cancelled is not an outcome of the step.
          if (core.signal.aborted) throw core.signal.reason;
          if (isOutage(error, run.run_id, core.handlers)) {
            await core.waitForStore(outagePause(outages));
            if (!core.signal.aborted) continue;
            throw core.signal.reason;
          }
          const failure = toStepError(error, `The ${kind} ${JSON.stringify(name)}`);
          return { state: "failed", value: storeError(failure, core.handlers.causeOf) } as const;
        }
      }
    }
  }

  /** A step cannot be suspended: its run stays in memory, without a slot. */
  async function awaitInStep({ run_id, signal }: AwaitedRun): Promise<void> {
    const takeSlot = parts.releaseSlot();
    try {
      const either = signal === undefined ? core.signal : AbortSignal.any([core.signal, signal]);
      await host.awaitRun(run_id, { signal: either });
    } finally {
      takeSlot();
    }
  }

  const attemptsAt =
    (name: string, work: StepWork<unknown>, options: StepOptions = {}) =>
    (idempotencyKey: string): Promise<unknown> =>
      attemptStep(
        (attempt) =>
          openStep.run({ key: `${attempt.idempotencyKey}:${attempt.attempt}`, calls: 0 }, () =>
            work(attempt),
          ),
        { clock, name, idempotencyKey, signal: core.signal, options },
      );

  return {
    id: run.run_id,
    attempt: run.crashes + 1,
    startedAt: run.started_at ?? run.accepted_at,
    signal: core.signal,
    ...contextParts,
    step: <Value>(name: string, work: StepWork<Value>, options: StepOptions = {}) => {
      const refusal = checkName(name) ?? checkStepOptions(options);
      if (refusal !== undefined) return Promise.reject(refusal);
      return journaled({ kind: "step", name }, attemptsAt(name, work, options)) as Promise<Value>;
    },
    stepAfter: <Value>(name: string, work: StepWork<Value>, awaited: AwaitedRun) => {
      const refusal = checkName(name);
      if (refusal !== undefined) return Promise.reject(refusal);
      return journaled({ kind: "step", name, awaited }, attemptsAt(name, work)) as Promise<Value>;
    },
    sleep: async (ms) => {
      if (!isTime(ms)) throw misused("The duration of a sleep must be a number of milliseconds, 0 or more.");
      if (openStep.getStore() !== undefined) await clock.sleep(ms, core.signal);
      else await core.guard(() => waits.wait("sleep", "", { ms }));
    },
    waitFor: async (name, { timeoutMs, schema } = {}) => {
      const refusal = checkName(name);
      if (refusal !== undefined) throw refusal;
      if (timeoutMs !== undefined && !isTime(timeoutMs))
        throw misused("timeoutMs must be a number, 0 or more.");
      if (openStep.getStore() !== undefined) {
        throw misused(
          `A step cannot wait for the signal ${JSON.stringify(name)}: the wait would be lost if the process ends. Call waitFor outside the step.`,
        );
      }
      return await core.guard(() => waits.wait("wait", name, { ms: timeoutMs, schema }));
    },
    patched: async (id) => {
      const refusal = checkName(id);
      if (refusal !== undefined) throw refusal;
      if (openStep.getStore() !== undefined) {
        throw misused(
          `A step cannot ask for the patch ${JSON.stringify(id)}: the code inside a step can change at any time. Call patched outside the step.`,
        );
      }
      return await core.guard(async () => {
        const answer = core.patched(id);
        if (answer.is === "new") {
          const head = {
            position: answer.position,
            kind: "patch",
            name: id,
            made_after: core.lastEnd,
          } as const;
          await core.atWork(async () =>
            core.deliver(await core.insist(() => core.journal.end(head, { state: "done", value: null }))),
          );
          return true;
        }
        if (answer.marker !== undefined) await core.deliver(answer.marker);
        return answer.value;
      });
    },
    now: async () => Number(await journaled({ kind: "now", name: "" }, async () => clock.now())),
    uuid: async () => String(await journaled({ kind: "uuid", name: "" }, async () => randomUUID())),
    dispatch: async (request) => {
      const refusal = checkName(request.agent);
      if (refusal !== undefined) throw refusal;
      const admit = (idempotency_key: string): Promise<DispatchReceipt> =>
        host.admit({
          ...request,
          idempotency_key,
          cause: { type: "run", run_id: run.run_id },
          ...principalOf(run.owner),
        });
      return (await journaled({ kind: "dispatch", name: request.agent }, admit)) as DispatchReceipt;
    },
  };
}

function checkName(name: unknown): KitError | undefined {
  if (isName(name)) return undefined;
  return misused(
    "The name of a step, a signal, an agent or a patch must be a string of 1 to 256 characters.",
  );
}

/** `internal_error`, not `invalid_request`: the workflow's code is wrong, not its caller. */
function misused(message: string): KitError {
  return new KitError({ code: "internal_error", message });
}

function isTime(ms: number): boolean {
  return Number.isFinite(ms) && ms >= 0 && ms <= 8.64e15;
}

function checkStepOptions({ attempts, backoffMs, timeoutMs }: StepOptions): KitError | undefined {
  if (attempts !== undefined && !(Number.isInteger(attempts) && attempts >= 1)) {
    return misused("attempts must be a whole number, 1 or more.");
  }
  const times = { backoffMs, timeoutMs };
  for (const [name, ms] of Object.entries(times)) {
    if (ms !== undefined && !isTime(ms))
      return misused(`${name} must be a number of milliseconds, 0 or more.`);
  }
  return undefined;
}

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
 * Runs the work of a step until an attempt succeeds, or throws the error of the last attempt. The error of an outage
 * is thrown at once, because it does not count as an attempt. Rejects with the reason of the run's signal as soon as
 * the signal fires, even if the work ignores it.
 */
export async function attemptStep<Value>(work: StepWork<Value>, call: StepCall): Promise<Value> {
  const { attempts = 1, backoffMs = 500 } = call.options;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await attemptOnce(work, { ...call, attempt });
    } catch (error) {
      const isLast = attempt >= attempts || isPermanent(error);
      if (call.signal.aborted || isLast || outageOf(error) !== undefined) throw error;
      await call.clock.sleep(Math.min(longestBackoffMs, backoffMs * 2 ** (attempt - 1)), call.signal);
    }
  }
}

function attemptOnce<Value>(
  work: StepWork<Value>,
  call: StepCall & { readonly attempt: number },
): Promise<Value> {
  const { clock, name, options, attempt, idempotencyKey } = call;
  return withDeadline((signal) => work({ idempotencyKey, attempt, signal }), {
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
 * The error that a step throws to its run: the `KitError` that its work threw, otherwise an `internal_error`, because the
 * message of another error may hold secrets. That message goes into the cause and the hint.
 */
function toStepError(error: unknown, step: string): KitError {
  if (error instanceof KitError) return error;
  return new KitError({ code: "internal_error", message: `${step} failed.`, cause: error });
}

/** Converts an error to its form in the journal; details that are not JSON are dropped. */
function storeError(error: KitError, causeOf: EngineHandlers["causeOf"]): StoredError {
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

/** Restores the error that was passed to `storeError`. */
export function loadError(stored: unknown): KitError {
  const { cause, ...init } = stored as StoredError;
  return new KitError(cause === undefined ? init : { ...init, cause: fromErrorCause(cause) });
}
