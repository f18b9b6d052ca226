import { type Clock, elapsedOf } from "../base/clock.ts";
import type { Admission, CallLimiter } from "./contract.ts";
import type { ProviderLimits } from "./provider-config.ts";

interface Call {
  readonly at: number;
  tokens: number;
  isPast: boolean;
}

interface Waiting {
  readonly tokens: number;
  readonly resolve: (admission: Admission) => void;
}

const minuteMs = 60_000;

/**
 * Delays the calls of a provider, in their order, until they fit into its limits over the last 60 seconds. Changes of the
 * system's time have no effect. One limiter serves all sessions of a process.
 *
 * For example:
 * const limiter = new ProviderLimiter({ requests_per_minute: 50 }, systemClock);
 * const admission = await limiter.admit(1_200, signal);
 */
export class ProviderLimiter implements CallLimiter {
  readonly #requests: number;
  readonly #tokens: number;
  readonly #clock: Clock;
  /** The calls of the last minute, oldest first. */
  readonly #calls: Call[] = [];
  #spent = 0;
  readonly #line: Waiting[] = [];
  /** Ends the sleep that waits until the oldest call is a minute old. */
  #alarm: AbortController | undefined;

  constructor(limits: ProviderLimits, clock: Clock) {
    this.#requests = limits.requests_per_minute ?? Number.POSITIVE_INFINITY;
    this.#tokens = limits.tokens_per_minute ?? Number.POSITIVE_INFINITY;
    this.#clock = clock;
  }

  admit(tokens: number, signal: AbortSignal): Promise<Admission> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason);
        return;
      }
      const leave = (): void => {
        const place = this.#line.indexOf(waiting);
        this.#line.splice(place, 1);
        reject(signal.reason);
        // The timer of an empty queue would keep the process alive.
        if (this.#line.length === 0) this.#alarm?.abort();
        else this.#move();
      };
      const waiting: Waiting = {
        tokens,
        resolve(admission) {
          signal.removeEventListener("abort", leave);
          resolve(admission);
        },
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#line.push(waiting);
      this.#move();
    });
  }

  /** Admits the calls that fit, and sets a timer for the next one. */
  #move(): void {
    const now = elapsedOf(this.#clock);
    this.#forget(now);
    for (;;) {
      const [next] = this.#line;
      if (next === undefined) return;
      if (!this.#hasRoom(next.tokens)) {
        this.#wait(now);
        return;
      }
      this.#line.shift();
      next.resolve(this.#begin(now, next.tokens));
    }
  }

  #hasRoom(tokens: number): boolean {
    if (this.#calls.length === 0) return true;
    return this.#calls.length < this.#requests && this.#spent + tokens <= this.#tokens;
  }

  #begin(at: number, estimate: number): Admission {
    const call: Call = { at, tokens: estimate, isPast: false };
    this.#calls.push(call);
    this.#spent += estimate;
    return {
      settle: (tokens) => {
        // A call older than a minute no longer counts.
        if (!call.isPast) this.#spent += tokens - call.tokens;
        call.tokens = tokens;
        if (tokens < estimate) this.#move();
      },
    };
  }

  #forget(now: number): void {
    for (;;) {
      const [oldest] = this.#calls;
      if (oldest === undefined || oldest.at > now - minuteMs) return;
      this.#calls.shift();
      oldest.isPast = true;
      this.#spent -= oldest.tokens;
    }
  }

  // No call fits before the oldest one is a minute old, unless an estimate was too high.
  #wait(now: number): void {
    const [oldest] = this.#calls;
    if (this.#alarm !== undefined || oldest === undefined) return;
    const alarm = new AbortController();
    this.#alarm = alarm;
    const ring = (): void => {
      this.#alarm = undefined;
      this.#move();
    };
    void this.#clock.sleep(Math.max(1, oldest.at + minuteMs - now), alarm.signal).then(ring, ring);
  }
}
