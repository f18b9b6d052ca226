import { AsyncLocalStorage } from "node:async_hooks";
import type { OperationName } from "../../agents/agent-runtime.ts";
import type { Approvals } from "../../agents/approvals/approvals.ts";
import { resumeFrom, Suspension, willResume } from "../../agents/log/resume.ts";
import { defined } from "../../base/record.ts";
import type { LinePlace, WorkContext } from "../../engine/contract.ts";
import type { WorkCause } from "../../protocol/work-cause.ts";

/** How an operation waits for a decision. */
export interface Wait {
  /** The same when the operation waits for the decision again. */
  readonly key: string;
  readonly signal: AbortSignal;
  /** Whether, at this moment, the operation does nothing but wait, and could go on from its log. */
  readonly maySuspend?: (() => boolean) | undefined;
}

type Outcome = { readonly value: unknown } | { readonly error: unknown };

interface Asked {
  readonly stop: AbortController;
  outcome: Outcome | undefined;
  onOutcome: ((outcome: Outcome) => void) | undefined;
}

/** How long work that was stopped while it rested may take to resume, so that it ends as other work does. */
const patienceMs = 1_000;

/**
 * Stored work that may wait for a decision. While it rests, memory holds its questions only; once there is an answer, or
 * once the work is stopped, its operation resumes from its log.
 */
export class RestingWork {
  readonly #context: WorkContext;
  readonly #asked = new Map<string, Asked>();
  #stop: AbortController | undefined;
  #stopLate: (() => void) | undefined;
  #wake: (() => void) | undefined;

  constructor(context: WorkContext) {
    this.#context = context;
  }

  /** Attempts the work, again each time that it has rested. */
  async run<Value>(attempt: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
    let rested: Suspension | undefined;
    try {
      for (;;) {
        try {
          return await this.#attempt(attempt, rested);
        } catch (error) {
          if (!(error instanceof Suspension)) throw error;
          rested = error;
        }
        await this.#rest();
      }
    } finally {
      const { signal } = this.#context;
      const reason: unknown = willResume(signal) ? signal.reason : new Error("The work has ended.");
      for (const { stop } of this.#asked.values()) stop.abort(reason);
      this.#asked.clear();
    }
  }

  /** Asks, or takes the answer to what was asked before the work rested. */
  ask<Value>(ask: (signal: AbortSignal) => Promise<Value>, { key, signal }: Wait): Promise<Value> {
    const asked = this.#asked.get(key) ?? this.#begin(key, ask);
    return new Promise((resolve, reject) => {
      const end = (): void => {
        signal.removeEventListener("abort", leave);
        asked.onOutcome = undefined;
      };
      const leave = (): void => {
        end();
        if (!(signal.reason instanceof Suspension)) {
          this.#asked.delete(key);
          asked.stop.abort(signal.reason);
        }
        reject(signal.reason);
      };
      asked.onOutcome = (outcome) => {
        end();
        this.#asked.delete(key);
        if ("error" in outcome) reject(outcome.error);
        else resolve(outcome.value as Value);
      };
      if (signal.aborted) return leave();
      signal.addEventListener("abort", leave, { once: true });
      this.#stopLate?.();
      if (asked.outcome !== undefined) asked.onOutcome?.(asked.outcome);
    });
  }

  /** Lets the operation go from memory. */
  rest(): void {
    this.#stop?.abort(new Suspension());
  }

  async #attempt<Value>(
    attempt: (signal: AbortSignal) => Promise<Value>,
    rested: Suspension | undefined,
  ): Promise<Value> {
    const { signal } = this.#context;
    const stop = new AbortController();
    const forward = (): void => stop.abort(signal.reason);
    let late: NodeJS.Timeout | undefined;
    if (rested !== undefined) resumeFrom(rested, stop.signal);
    if (!signal.aborted) signal.addEventListener("abort", forward, { once: true });
    else if (rested === undefined) forward();
    else {
      // It ends as if it had not rested: its calls are waited for again, and then stopped.
      this.#stopLate = forward;
      late = setTimeout(forward, patienceMs);
    }
    this.#stop = stop;
    try {
      return await attempt(stop.signal);
    } finally {
      clearTimeout(late);
      signal.removeEventListener("abort", forward);
      this.#stop = undefined;
      this.#stopLate = undefined;
    }
  }

  /** Resolves once the work is to resume. Throws the reason where another process, or the next start, resumes it. */
  async #rest(): Promise<void> {
    const { signal } = this.#context;
    const takeSlot = this.#context.releaseSlot();
    await new Promise<void>((resolve) => {
      const isDue = [...this.#asked.values()].some(({ outcome }) => outcome !== undefined);
      if (isDue || signal.aborted) return resolve();
      this.#wake = resolve;
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    this.#wake = undefined;
    takeSlot();
    if (willResume(signal)) throw signal.reason;
  }

  #begin<Value>(key: string, ask: (signal: AbortSignal) => Promise<Value>): Asked {
    const asked: Asked = { stop: new AbortController(), outcome: undefined, onOutcome: undefined };
    const settled = (outcome: Outcome): void => {
      asked.outcome = outcome;
      if (asked.onOutcome !== undefined) asked.onOutcome(outcome);
      else this.#wake?.();
    };
    ask(asked.stop.signal).then(
      (value) => settled({ value }),
      (error: unknown) => settled({ error }),
    );
    this.#asked.set(key, asked);
    return asked;
  }
}

interface HeldWork extends Pick<LinePlace, "principal"> {
  readonly context: WorkContext;
  /** Set for stored work, which can be resumed. */
  readonly resting?: RestingWork | undefined;
  /** The operation of a prompt. */
  readonly prompt?: OperationName | undefined;
}

interface Waiting {
  readonly resting: RestingWork;
  readonly maySuspend: () => boolean;
  readonly since: number;
}

/** Most decisions of a person at work are there by then. */
const defaultRestMs = 5_000;

/** Which of the engine's work the code that runs belongs to, however deep in an agent's tools it is. */
export class WorkSlots {
  readonly #restMs: number;
  readonly #current = new AsyncLocalStorage<HeldWork>();
  // In the order in which they began to wait.
  readonly #waiting = new Set<Waiting>();
  #hasTimer = false;

  constructor(restMs: number = defaultRestMs) {
    this.#restMs = restMs;
  }

  /** Runs code as part of a work of the engine. */
  hold<Value>(work: HeldWork, run: () => Promise<Value>): Promise<Value> {
    return this.#current.run(work, run);
  }

  /** For whom the code that runs works: what it dispatches has the same principal. */
  principal(): Pick<LinePlace, "principal"> {
    const principal = this.#current.getStore()?.principal;
    return principal === undefined ? {} : { principal };
  }

  /** The cause of work that tools and agents begin: their operation, or else the prompt or the run that is at work. */
  causeOf(operation: OperationName | undefined, run_id: string | undefined): WorkCause | undefined {
    const { context, prompt } = this.#current.getStore() ?? {};
    const asked = operation ?? prompt;
    if (asked === undefined) return run_id === undefined ? undefined : { type: "run", run_id };
    const dispatch_id = context?.id.startsWith("dispatch_") && run_id === undefined ? context.id : undefined;
    const { agent, instance_id, session, operation_id } = asked;
    return {
      type: "prompt",
      agent,
      instance_id,
      session,
      operation_id,
      ...defined({ dispatch_id, run_id }),
    };
  }

  /** Waits for other work, which may need the slot of this one. */
  async whileFree<Value>(wait: () => Promise<Value>): Promise<Value> {
    const takeSlot = this.#current.getStore()?.context.releaseSlot();
    try {
      return await wait();
    } finally {
      takeSlot?.();
    }
  }

  /** Approvals for agents of a service: while a call waits for its decision, other work has its slot. */
  freeWhileDeciding(approvals: Approvals): Approvals {
    const { timeoutMs } = approvals;
    return {
      timeoutMs,
      request: (request, signal, maySuspend) =>
        this.#whileSuspended((stop) => approvals.request(request, stop), {
          key: request.approval_id,
          signal,
          maySuspend,
        }),
      decide: (approvalId, decision, within) => approvals.decide(approvalId, decision, within),
      list: (filter) => approvals.list(filter),
    };
  }

  /** Frees the slot until there is an answer: a person may take days. After a while the work rests, if it can. */
  async #whileSuspended<Value>(ask: (signal: AbortSignal) => Promise<Value>, wait: Wait): Promise<Value> {
    const { resting } = this.#current.getStore() ?? {};
    return await this.whileFree(() =>
      resting === undefined ? ask(wait.signal) : this.#awaitResting(resting, ask, wait),
    );
  }

  async #awaitResting<Value>(
    resting: RestingWork,
    ask: (signal: AbortSignal) => Promise<Value>,
    wait: Wait,
  ): Promise<Value> {
    const { maySuspend } = wait;
    if (maySuspend === undefined) return await resting.ask(ask, wait);
    const own: Waiting = { resting, maySuspend, since: performance.now() };
    this.#waiting.add(own);
    this.#restLater();
    try {
      return await resting.ask(ask, wait);
    } finally {
      this.#waiting.delete(own);
    }
  }

  #restDue(): void {
    this.#hasTimer = false;
    const before = performance.now() - this.#restMs;
    for (const each of this.#waiting) {
      if (each.since > before) break;
      if (each.maySuspend()) each.resting.rest();
    }
    this.#restLater();
  }

  /** One timer for all that wait. It keeps no process alive. */
  #restLater(): void {
    if (this.#hasTimer || this.#waiting.size === 0) return;
    this.#hasTimer = true;
    this.#current.exit(() => setTimeout(() => this.#restDue(), this.#restMs / 4).unref());
  }
}
