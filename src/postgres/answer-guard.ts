import { setTimeout as sleep } from "node:timers/promises";
import { isoTime } from "../base/clock.ts";
import type { KitError } from "../base/kit-error.ts";
import { storeUnavailable } from "../protocol/error-code.ts";
import { hasAnswered } from "./postgres-error.ts";

export interface AnswerGuardOptions {
  /** As the subject of an error's sentence: `The session store`. */
  readonly store: string;
  /** Opens a connection of its own and asks something small. Stops at once when the signal fires. */
  readonly probe: (signal: AbortSignal) => Promise<void>;
  /** Called when the database has stopped to answer: what is open to it is of no use. */
  readonly onSilent: () => void;
  /** How long a call may take before the probe is asked, and the probe before the database counts as away. */
  readonly patienceMs: number;
}

/** A call that runs. */
export interface GuardedCall {
  /** Whether the call has failed for its caller: no further query may run for it. */
  readonly isOver: boolean;
  /** It has a connection: `stop` breaks it when the call is given up, `bytes` says how much has come over it. */
  begin(connection: { readonly stop: () => void; readonly bytes: () => number }): void;
}

/** Silence on a connection of a database that answers others, in patiences: its connection is dead, or a lock is held. */
const maxSilentChecks = 5;

/** How long calls under way may take to end when the database is closed, and how often that is looked at. */
const finishMs = 1_000;
const finishStepMs = 5;

/**
 * Detects a database that accepts connections and does not answer, or whose host is gone: the network reports neither.
 * While the database is silent, calls are refused at once, and the guard probes it in the background until it answers.
 */
export class AnswerGuard {
  readonly #options: AnswerGuardOptions;
  readonly #calls = new Set<(error: KitError) => void>();
  #silentSince: number | undefined;
  #probing: Promise<boolean> | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #closed = new AbortController();

  constructor(options: AnswerGuardOptions) {
    this.#options = options;
  }

  /** Rejects with `store_unavailable` where the database is silent; otherwise as the work does. */
  run<Value>(
    work: (call: GuardedCall) => Promise<Value>,
    { isLong = false }: { readonly isLong?: boolean } = {},
  ): Promise<Value> {
    if (this.#silentSince !== undefined) return Promise.reject(this.#refusal(this.#silentSince));
    return new Promise((resolve, reject) => {
      let connection: Parameters<GuardedCall["begin"]>[0] | undefined;
      let isOver = false;
      let bytes = 0;
      let silentChecks = 0;
      const end = (): void => {
        isOver = true;
        clearInterval(timer);
        this.#calls.delete(giveUp);
      };
      const giveUp = (error: KitError): void => {
        end();
        connection?.stop();
        reject(error);
      };
      const call: GuardedCall = {
        get isOver() {
          return isOver;
        },
        begin(made) {
          connection = made;
          bytes = made.bytes();
        },
      };
      const { patienceMs } = this.#options;
      const timer = setInterval(() => {
        const before = bytes;
        bytes = connection?.bytes() ?? 0;
        silentChecks = bytes === before ? silentChecks + 1 : 0;
        if (silentChecks >= maxSilentChecks && !isLong)
          giveUp(this.#refusal(Date.now() - silentChecks * patienceMs));
        else if (silentChecks > 0) void this.#check();
      }, patienceMs);
      this.#calls.add(giveUp);
      work(call).then(
        (value) => {
          end();
          resolve(value);
        },
        (error: unknown) => {
          end();
          reject(error);
        },
      );
    });
  }

  /** Waits for the calls under way, so long as the database answers, and for a second at most. */
  async finish(): Promise<void> {
    for (let waited = 0; this.#calls.size > 0 && waited < finishMs; waited += finishStepMs) {
      if (this.#silentSince !== undefined) return;
      await sleep(finishStepMs);
    }
  }

  close(): void {
    this.#closed.abort();
    clearTimeout(this.#timer);
    for (const giveUp of [...this.#calls]) giveUp(this.#refusal(Date.now()));
  }

  async #check(): Promise<void> {
    if (this.#silentSince !== undefined || (await this.#answers()) || this.#closed.signal.aborted) return;
    if (this.#silentSince !== undefined) return;
    this.#silentSince = Date.now() - 2 * this.#options.patienceMs;
    for (const giveUp of [...this.#calls]) giveUp(this.#refusal(this.#silentSince));
    this.#options.onSilent();
    this.#askLater();
  }

  /** It keeps no process alive. */
  #askLater(): void {
    this.#timer = setTimeout(async () => {
      if (await this.#answers()) this.#silentSince = undefined;
      else if (!this.#closed.signal.aborted) this.#askLater();
    }, this.#options.patienceMs / 2);
    this.#timer.unref();
  }

  #answers(): Promise<boolean> {
    const { probe, patienceMs } = this.#options;
    this.#probing ??= probe(AbortSignal.any([AbortSignal.timeout(patienceMs), this.#closed.signal]))
      // A refusal is an answer too.
      .then(() => true, hasAnswered)
      .finally(() => {
        this.#probing = undefined;
      });
    return this.#probing;
  }

  #refusal(since: number): KitError {
    return storeUnavailable({
      store: this.#options.store,
      reason: "its database does not answer",
      hint: `Nothing has come from Postgres since ${isoTime(since)}. kit keeps asking, and continues by itself once it answers.`,
      since,
    });
  }
}
