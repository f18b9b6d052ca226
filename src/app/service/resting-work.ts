import type { ApprovalWait } from "../../agents/approvals/approvals.ts";
import { attempts, Suspension, suspensions, willResume } from "../../agents/log/suspension.ts";
import type { WorkContext } from "../../engine/contract.ts";

/** The wait of an operation for a decision. */
export interface Wait extends ApprovalWait {
  /** Identifies the decision: the same if the operation waits for it again. */
  readonly key: string;
  readonly signal: AbortSignal;
}

/** Asks a question; `onWaiting` as in `ApprovalWait`. */
export type Ask<Value> = (signal: AbortSignal, onWaiting: ApprovalWait["onWaiting"]) => Promise<Value>;

type Outcome = { readonly value: unknown } | { readonly error: unknown };

/** While the work rests, a question refers to nothing of its operation. */
interface Question {
  readonly stop: AbortController;
  outcome: Outcome | undefined;
  onOutcome: ((outcome: Outcome) => void) | undefined;
  onWaiting: (() => void) | undefined;
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
  /** The keys of the questions of the newest attempt. */
  readonly #asked = new Set<string>();
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
  ask<Value>(ask: Ask<Value>, { key, signal, onWaiting }: Wait): Promise<Value> {
    this.#asked.add(key);
    const known = this.#questions.get(key);
    const question = known ?? this.#begin(key, ask, onWaiting);
    return new Promise((resolve, reject) => {
      const end = (): void => {
        signal.removeEventListener("abort", leave);
        question.onOutcome = undefined;
        question.onWaiting = undefined;
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
      // It has waited since before the work rested.
      if (known !== undefined) onWaiting?.();
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
    this.#asked.clear();
    const stop = new AbortController();
    const forward = (): void => stop.abort(signal.reason);
    let late: NodeJS.Timeout | undefined;
    if (rested !== undefined) suspensions.set(stop.signal, rested);
    const { id: dispatch_id, attempt: number, planRetry } = this.#context;
    if (planRetry !== undefined) attempts.set(stop.signal, { dispatch_id, number, planRetry });
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
    if (!willResume(signal)) this.#withdrawUnasked();
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

  /** Ends the questions that an earlier attempt asked, and this one did not: their answers change nothing any more. */
  #withdrawUnasked(): void {
    for (const [key, { stop }] of this.#questions) {
      if (this.#asked.has(key)) continue;
      this.#questions.delete(key);
      stop.abort(new Error("The question is not asked any more."));
    }
  }

  #begin<Value>(key: string, ask: Ask<Value>, onWaiting: ApprovalWait["onWaiting"]): Question {
    const stop = new AbortController();
    const question: Question = { stop, outcome: undefined, onOutcome: undefined, onWaiting };
    const settled = (outcome: Outcome): void => {
      question.outcome = outcome;
      if (question.onOutcome !== undefined) question.onOutcome(outcome);
      else this.#wake?.();
    };
    ask(stop.signal, () => question.onWaiting?.()).then(
      (value) => settled({ value }),
      (error: unknown) => settled({ error }),
    );
    this.#questions.set(key, question);
    return question;
  }
}
