import { setTimeout as sleep } from "node:timers/promises";
import { isoTime } from "../base/clock.ts";
import type { KitError } from "../base/kit-error.ts";
import { storeUnavailable } from "../protocol/error-code.ts";
import { hasAnswered } from "./postgres-error.ts";

export interface AnswerGuardOptions {
  /** The subject of error messages: `The session store`. */
  readonly store: string;
  /** Opens a new connection and runs a trivial query. Stops at once when the signal fires. */
  readonly probe: (signal: AbortSignal) => Promise<void>;
  /** Called when the database has stopped answering: its open connections are useless. */
  readonly onSilent: () => void;
  /** How long a call can be silent before the guard probes the database, and how long the probe can take. */
  readonly patienceMs: number;
}

/** A running call. */
export interface GuardedCall {
  /** Whether the call was rejected: no further query may run for it. */
  readonly isOver: boolean;
  /** Registers the call's connection: `stop` breaks it if the call is given up, `bytes` returns the bytes received over it. */
  begin(connection: { readonly stop: () => void; readonly bytes: () => number }): void;
}

/** Checks without received bytes after which a call fails although the database answers: its connection is dead or waits for a lock. */
const maxSilentChecks = 5;

/** How long running calls can take to end when the database is closed, and how often this is checked. */
const finishMs = 1_000;
const finishStepMs = 5;

/**
 * Detects a database that accepts connections but does not answer, or whose host is gone: the network reports neither.
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

  /** Runs work. Rejects with `store_unavailable` if the database is silent. */
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
        begin(opened) {
          connection = opened;
          bytes = opened.bytes();
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

  /** Waits for the running calls while the database answers, for at most a second. */
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
    this.#probeLater();
  }

  /** Probes until the database answers. The timer does not keep the process alive. */
  #probeLater(): void {
    this.#timer = setTimeout(async () => {
      if (await this.#answers()) this.#silentSince = undefined;
      else if (!this.#closed.signal.aborted) this.#probeLater();
    }, this.#options.patienceMs / 2);
    this.#timer.unref();
  }

  #answers(): Promise<boolean> {
    const { probe, patienceMs } = this.#options;
    this.#probing ??= probe(AbortSignal.any([AbortSignal.timeout(patienceMs), this.#closed.signal]))
      // An error of the server is an answer too.
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
      hint: `Postgres has sent nothing since ${isoTime(since)}. kit keeps trying, and continues automatically once Postgres answers.`,
      since,
    });
  }
}
