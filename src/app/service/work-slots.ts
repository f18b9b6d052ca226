import { AsyncLocalStorage } from "node:async_hooks";
import type { OperationName } from "../../agents/agent-runtime.ts";
import type { Approvals } from "../../agents/approvals/approvals.ts";
import { Suspension } from "../../agents/log/suspension.ts";
import { defined } from "../../base/record.ts";
import type { Engine, WorkContext } from "../../engine/contract.ts";
import type { CallWork } from "../../engine/waiting-calls-contract.ts";
import type { ApprovalRequest } from "../../protocol/approval.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { WorkCause } from "../../protocol/work-cause.ts";
import type { Caller, Input } from "./input.ts";
import type { Ask, RestingWork, Wait } from "./resting-work.ts";

/** An input, or a run, that the engine has started. */
interface StartedWork {
  readonly context: WorkContext;
  readonly caller: Caller;
  /** Undefined for a run. */
  readonly input: Omit<Input, "instead"> | undefined;
}

interface Waiting {
  readonly resting: RestingWork;
  readonly maySuspend: () => boolean;
  readonly since: number;
}

/** A person at work has made most decisions by then. */
const defaultRestMs = 5_000;

/** Knows the engine's work to which the running code belongs, also deep inside an agent's tools. */
export class WorkSlots {
  readonly #restMs: number;
  readonly #current = new AsyncLocalStorage<StartedWork>();
  // In the order in which they began to wait.
  readonly #waiting = new Set<Waiting>();
  #hasTimer = false;

  constructor(restMs: number = defaultRestMs) {
    this.#restMs = restMs;
  }

  /** Runs code as part of a work of the engine. */
  hold<Value>(work: StartedWork, run: () => Promise<Value>): Promise<Value> {
    return this.#current.run(work, run);
  }

  /** Returns the principal of the running work: work that it dispatches has the same principal. */
  principal(): Pick<Caller, "principal"> {
    const principal = this.#current.getStore()?.caller.principal;
    return principal === undefined ? {} : { principal };
  }

  /**
   * Returns a function that finds the waiting inputs that can join the running work. A tool that a message causes to run has the
   * principal of the operation, so only the same principal's messages join.
   */
  joining(engine: Pick<Engine, "waitingInputs">): (session: SessionKey) => readonly string[] {
    return (session) => engine.waitingInputs?.({ ...session, ...this.principal() }) ?? [];
  }

  /** Returns the cause of work that tools and agents start: their operation, else the running prompt, else the run. */
  causeOf(operation: OperationName | undefined, run_id: string | undefined): WorkCause | undefined {
    const { context, input } = this.#current.getStore() ?? {};
    const origin = operation ?? (input && { ...input.key, operation_id: input.operationId });
    if (origin === undefined) return run_id === undefined ? undefined : { type: "run", run_id };
    const dispatch_id = context?.id.startsWith("dispatch_") && run_id === undefined ? context.id : undefined;
    const { agent, instance_id, session, operation_id } = origin;
    return {
      type: "prompt",
      agent,
      instance_id,
      session,
      operation_id,
      ...defined({ dispatch_id, run_id }),
    };
  }

  /** The work of the engine to which a waiting call belongs. */
  workOf({ operation_id, task_id, run_id }: ApprovalRequest): CallWork | undefined {
    const { context, input } = this.#current.getStore() ?? {};
    if (context === undefined) return undefined;
    const { id, fence } = context;
    if (input === undefined)
      return { owned: { run_id: id }, fence, ...(run_id === id ? { resumes: id } : {}) };
    // A tool can prompt another session, which nothing resumes.
    const isResumed =
      input.resting !== undefined && (operation_id === input.operationId || task_id !== undefined);
    return { owned: input.key, fence, ...(isResumed ? { resumes: id } : {}) };
  }

  /** Releases the slot of the running work while it waits for other work, which can need a slot. */
  async whileFree<Value>(wait: () => Promise<Value>): Promise<Value> {
    const takeSlot = this.#current.getStore()?.context.releaseSlot();
    try {
      return await wait();
    } finally {
      takeSlot?.();
    }
  }

  /** Wraps approvals: while a call waits for its decision, other work can use its slot. */
  freeWhileDeciding(approvals: Approvals): Approvals {
    const { timeoutMs } = approvals;
    return {
      timeoutMs,
      request: (request, signal, wait) =>
        this.#whileSuspended((stop, onWaiting) => approvals.request(request, stop, { onWaiting }), {
          ...wait,
          key: request.approval_id,
          signal,
        }),
      decide: (approvalId, decision, within) => approvals.decide(approvalId, decision, within),
      list: (filter) => approvals.list(filter),
    };
  }

  /** Releases the slot until the decision: a person can take days. After `restMs` the work rests, if it can. */
  async #whileSuspended<Value>(ask: Ask<Value>, wait: Wait): Promise<Value> {
    const resting = this.#current.getStore()?.input?.resting;
    return await this.whileFree(() =>
      resting === undefined ? ask(wait.signal, wait.onWaiting) : this.#awaitResting(resting, ask, wait),
    );
  }

  async #awaitResting<Value>(resting: RestingWork, ask: Ask<Value>, wait: Wait): Promise<Value> {
    const { maySuspend } = wait;
    if (maySuspend === undefined) return await resting.ask(ask, wait);
    const waiting: Waiting = { resting, maySuspend, since: performance.now() };
    this.#waiting.add(waiting);
    const onWaiting = (): void => {
      wait.onWaiting?.();
      if (maySuspend()) resting.setIdle(true);
    };
    this.#restLater();
    try {
      return await resting.ask(ask, { ...wait, onWaiting });
    } finally {
      this.#waiting.delete(waiting);
      if (!(wait.signal.reason instanceof Suspension)) resting.setIdle(false);
    }
  }

  #restDue(): void {
    this.#hasTimer = false;
    const before = performance.now() - this.#restMs;
    for (const each of this.#waiting) {
      if (!each.maySuspend()) continue;
      each.resting.setIdle(true);
      if (each.since <= before) each.resting.rest();
    }
    this.#restLater();
  }

  /** Sets one timer for all waiting work. The timer does not keep the process alive. */
  #restLater(): void {
    if (this.#hasTimer || this.#waiting.size === 0) return;
    this.#hasTimer = true;
    this.#current.exit(() => setTimeout(() => this.#restDue(), this.#restMs / 4).unref());
  }
}
