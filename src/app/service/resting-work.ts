import { goOnFrom, Rested } from "../../agents/session/rested.ts";
import { isPutOff } from "../../agents/turn/put-off.ts";
import type { WorkContext } from "../../engine/contract.ts";

/** How something waits for somebody. */
export interface Wait {
  /** The same when it is waited for again. */
  readonly key: string;
  readonly signal: AbortSignal;
  /** Whether, at this moment, the operation does nothing but wait, and could go on from its log. */
  readonly mayRest?: (() => boolean) | undefined;
}

type Outcome = { readonly value: unknown } | { readonly error: unknown };

interface Asked {
  readonly stop: AbortController;
  outcome: Outcome | undefined;
  hear: ((outcome: Outcome) => void) | undefined;
}

/** How long work that was stopped while it rested may take until it waits again, to end as others do. */
const patienceMs = 1_000;

/**
 * Accepted work that may wait for somebody: while it rests, only what it has asked is kept, and its operation is begun again
 * from its log once there is an answer, or once it is stopped.
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
    let rested: Rested | undefined;
    try {
      for (;;) {
        try {
          return await this.#attempt(attempt, rested);
        } catch (error) {
          if (!(error instanceof Rested)) throw error;
          rested = error;
        }
        await this.#rest();
      }
    } finally {
      for (const { stop } of this.#asked.values()) stop.abort(new Error("Nobody waits for it."));
      this.#asked.clear();
    }
  }

  /** Asks, or takes the answer to what was asked before the work rested. */
  ask<Value>(ask: (signal: AbortSignal) => Promise<Value>, { key, signal }: Wait): Promise<Value> {
    const asked = this.#asked.get(key) ?? this.#begin(key, ask);
    return new Promise((resolve, reject) => {
      const end = (): void => {
        signal.removeEventListener("abort", leave);
        asked.hear = undefined;
      };
      const leave = (): void => {
        end();
        if (!(signal.reason instanceof Rested)) {
          this.#asked.delete(key);
          asked.stop.abort(signal.reason);
        }
        reject(signal.reason);
      };
      asked.hear = (outcome) => {
        end();
        this.#asked.delete(key);
        if ("error" in outcome) reject(outcome.error);
        else resolve(outcome.value as Value);
      };
      if (signal.aborted) return leave();
      signal.addEventListener("abort", leave, { once: true });
      this.#stopLate?.();
      if (asked.outcome !== undefined) asked.hear?.(asked.outcome);
    });
  }

  /** Gives the operation up in memory. */
  rest(): void {
    this.#stop?.abort(new Rested());
  }

  async #attempt<Value>(
    attempt: (signal: AbortSignal) => Promise<Value>,
    rested: Rested | undefined,
  ): Promise<Value> {
    const { signal } = this.#context;
    const stop = new AbortController();
    const forward = (): void => stop.abort(signal.reason);
    let late: NodeJS.Timeout | undefined;
    if (rested !== undefined) goOnFrom(rested, stop.signal);
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

  /** Resolves once it is to go on. Throws why not, where another process or the next start goes on with it. */
  async #rest(): Promise<void> {
    const { signal } = this.#context;
    const goOn = this.#context.standAside();
    await new Promise<void>((resolve) => {
      const isDue = [...this.#asked.values()].some(({ outcome }) => outcome !== undefined);
      if (isDue || signal.aborted) return resolve();
      this.#wake = resolve;
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    this.#wake = undefined;
    goOn();
    if (isPutOff(signal)) throw signal.reason;
  }

  #begin<Value>(key: string, ask: (signal: AbortSignal) => Promise<Value>): Asked {
    const asked: Asked = { stop: new AbortController(), outcome: undefined, hear: undefined };
    const heard = (outcome: Outcome): void => {
      asked.outcome = outcome;
      if (asked.hear !== undefined) asked.hear(outcome);
      else this.#wake?.();
    };
    ask(asked.stop.signal).then(
      (value) => heard({ value }),
      (error: unknown) => heard({ error }),
    );
    this.#asked.set(key, asked);
    return asked;
  }
}
