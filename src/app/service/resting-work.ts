import { AsyncLocalStorage } from "node:async_hooks";
import type { OperationName } from "../../agents/agent-runtime.ts";
import type { Approvals } from "../../agents/approvals/approvals.ts";
import { isSuspension, resumeFrom, Suspension, willResume } from "../../agents/log/suspension.ts";
import { defined } from "../../base/record.ts";
import type { LinePlace, WorkContext } from "../../engine/contract.ts";
import type { CallWork } from "../../engine/waiting-calls-contract.ts";
import type { ApprovalRequest } from "../../protocol/approval.ts";
import type { WorkCause } from "../../protocol/work-cause.ts";

/** The wait of an operation for a decision. */
export interface Wait {
  /** Identifies the decision: the same if the operation waits for it again. */
  readonly key: string;
  readonly signal: AbortSignal;
  /** Whether the operation only waits at the moment and could resume from its log. */
  readonly maySuspend?: (() => boolean) | undefined;
}

type Outcome = { readonly value: unknown } | { readonly error: unknown };

interface Question {
  readonly stop: AbortController;
  outcome: Outcome | undefined;
  onOutcome: ((outcome: Outcome) => void) | undefined;
}

/** How long an abort waits for suspended work to resume, so that the work ends with the usual events. */
const patienceMs = 1_000;

/**
 * Stored work that can wait for a decision. While it rests, memory holds only its questions. Once a decision arrives, or
 * the work is aborted, its operation resumes from its log.
 */
export class RestingWork {
  readonly #context: WorkContext;
  readonly #questions = new Map<string, Question>();
  #stop: AbortController | undefined;
  #stopLate: (() => void) | undefined;
  #wake: (() => void) | undefined;
  #isIdle = false;

  constructor(context: WorkContext) {
    this.#context = context;
  }

  /** Runs the work, and runs it again each time after it has rested. */
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
      for (const { stop } of this.#questions.values()) stop.abort(reason);
      this.#questions.clear();
    }
  }

  /** Asks a question, or waits for the answer to the same question that was asked before the work rested. */
  ask<Value>(ask: (signal: AbortSignal) => Promise<Value>, { key, signal }: Wait): Promise<Value> {
    const question = this.#questions.get(key) ?? this.#begin(key, ask);
    return new Promise((resolve, reject) => {
      const end = (): void => {
        signal.removeEventListener("abort", leave);
        question.onOutcome = undefined;
      };
      const leave = (): void => {
        end();
        if (!(signal.reason instanceof Suspension)) {
          this.#questions.delete(key);
          question.stop.abort(signal.reason);
        }
        reject(signal.reason);
      };
      question.onOutcome = (outcome) => {
        end();
        this.#questions.delete(key);
        if ("error" in outcome) reject(outcome.error);
        else resolve(outcome.value as Value);
      };
      if (signal.aborted) return leave();
      signal.addEventListener("abort", leave, { once: true });
      this.#stopLate?.();
      if (question.outcome !== undefined) question.onOutcome?.(question.outcome);
    });
  }

  /** Notes whether the work only waits for decisions. */
  setIdle(idle: boolean): void {
    if (idle === this.#isIdle) return;
    this.#isIdle = idle;
    this.#context.setIdle?.(idle);
  }

  /** Suspends the operation, so that it leaves the memory. */
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
      // The operation ends as if it had not rested: it waits for its calls again, and only then is it aborted.
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

  /** Resolves when the work has to resume. Throws the reason if another process, or the next start, will resume it. */
  async #rest(): Promise<void> {
    const { signal } = this.#context;
    const takeSlot = this.#context.releaseSlot();
    this.setIdle(true);
    await new Promise<void>((resolve) => {
      const isDue = [...this.#questions.values()].some(({ outcome }) => outcome !== undefined);
      if (isDue || signal.aborted) return resolve();
      this.#wake = resolve;
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    this.#wake = undefined;
    this.setIdle(false);
    takeSlot();
    if (willResume(signal)) throw signal.reason;
  }

  #begin<Value>(key: string, ask: (signal: AbortSignal) => Promise<Value>): Question {
    const question: Question = { stop: new AbortController(), outcome: undefined, onOutcome: undefined };
    const settled = (outcome: Outcome): void => {
      question.outcome = outcome;
      if (question.onOutcome !== undefined) question.onOutcome(outcome);
      else this.#wake?.();
    };
    ask(question.stop.signal).then(
      (value) => settled({ value }),
      (error: unknown) => settled({ error }),
    );
    this.#questions.set(key, question);
    return question;
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

/** A person at work has made most decisions by then. */
const defaultRestMs = 5_000;

/** Knows the engine's work to which the running code belongs, also deep inside an agent's tools. */
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

  /** Returns the principal of the running work: work that it dispatches has the same principal. */
  principal(): Pick<LinePlace, "principal"> {
    const principal = this.#current.getStore()?.principal;
    return principal === undefined ? {} : { principal };
  }

  /** Returns the cause of work that tools and agents start: their operation, else the running prompt, else the run. */
  causeOf(operation: OperationName | undefined, run_id: string | undefined): WorkCause | undefined {
    const { context, prompt } = this.#current.getStore() ?? {};
    const origin = operation ?? prompt;
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
    const { context, prompt, resting } = this.#current.getStore() ?? {};
    if (context === undefined) return undefined;
    const { id, fence } = context;
    if (prompt === undefined)
      return { owned: { run_id: id }, fence, ...(run_id === id ? { resumes: id } : {}) };
    // A tool can prompt another session, which nothing resumes.
    const isResumed =
      resting !== undefined && (operation_id === prompt.operation_id || task_id !== undefined);
    return { owned: prompt, fence, ...(isResumed ? { resumes: id } : {}) };
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

  /** Releases the slot until the decision: a person can take days. After `restMs` the work rests, if it can. */
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
    const waiting: Waiting = { resting, maySuspend, since: performance.now() };
    this.#waiting.add(waiting);
    if (maySuspend()) resting.setIdle(true);
    this.#restLater();
    try {
      return await resting.ask(ask, wait);
    } finally {
      this.#waiting.delete(waiting);
      if (!isSuspension(wait.signal)) resting.setIdle(false);
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
