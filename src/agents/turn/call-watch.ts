import type { LanguageModelV4, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { KitError } from "../../base/kit-error.ts";

/** Ticks per idle timeout: silence is noticed at most one tick late. */
const ticks = 10;

type Answer = Awaited<ReturnType<LanguageModelV4["doStream"]>>;
type Reader = ReadableStreamDefaultReader<LanguageModelV4StreamPart>;

export interface WatchOptions {
  /** Stops the call that runs, and every later one. */
  readonly signal: AbortSignal;
  /** Milliseconds without any part of an answer before the call is given up. */
  readonly idleTimeoutMs: number;
}

/**
 * Watches successive model calls: the caller's abort or silence stops a call, even if the provider ignores the signal.
 * One watch serves all turns of an operation, because its timer and signal cost more than the rest of a short turn.
 * Dispose of it after the last call.
 */
export class CallWatch implements Disposable {
  readonly #options: WatchOptions;
  readonly #onAbort: () => void;
  #controller = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #silentTicks = 0;
  #runs = false;
  #refuse: ((reason: unknown) => void) | undefined;
  #reader: Reader | undefined;
  /** Why the call was stopped. */
  stopped: { readonly reason: unknown } | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#onAbort = () => this.stop(options.signal.reason);
    options.signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** Whether the caller aborted, as opposed to a silent provider. */
  get aborted(): boolean {
    return this.#options.signal.aborted;
  }

  /** Starts a call; the provider gets the returned signal. */
  begin(): AbortSignal {
    if (this.#controller.signal.aborted) this.#controller = new AbortController();
    this.stopped = undefined;
    this.#runs = true;
    this.#silentTicks = 0;
    this.#timer ??= setInterval(() => this.#tick(), this.#options.idleTimeoutMs / ticks);
    if (this.aborted) this.#onAbort();
    return this.#controller.signal;
  }

  /** Waits for the start of the answer. An answer that starts after the call was stopped is cancelled. */
  first(answer: PromiseLike<Answer>): Promise<Reader> {
    return new Promise((resolve, reject) => {
      this.#refuse = reject;
      const { stopped } = this;
      if (stopped !== undefined) reject(stopped.reason);
      const signal = this.#controller.signal;
      answer.then(({ stream }) => {
        if (signal.aborted) stream.cancel(signal.reason).catch(() => undefined);
        else {
          this.#reader = stream.getReader();
          resolve(this.#reader);
        }
      }, reject);
    });
  }

  /** Notes that a part has arrived. Resetting a timer for every part would cost more than reading it. */
  touch(): void {
    this.#silentTicks = 0;
  }

  stop(reason: unknown): void {
    if (!this.#runs || this.stopped !== undefined) return;
    this.stopped = { reason };
    this.#controller.abort(reason);
    this.#refuse?.(reason);
    // Ends a pending read, also of a stream that ignores the signal.
    this.#reader?.cancel(reason).catch(() => undefined);
  }

  end(): void {
    this.#runs = false;
    this.#refuse = undefined;
    this.#reader = undefined;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#options.signal.removeEventListener("abort", this.#onAbort);
  }

  // The timer keeps running between calls, which is cheaper than setting it again. It stops when no call runs: a tool
  // that waits for a person may take days.
  #tick(): void {
    if (!this.#runs) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    this.#silentTicks += 1;
    // The first tick may have come at once.
    if (this.#silentTicks > ticks) this.stop(silent(this.#options.idleTimeoutMs));
  }
}

function silent(idleTimeoutMs: number): KitError {
  return new KitError({
    code: "model_timeout",
    message: `The model sent nothing for ${Math.round(idleTimeoutMs / 1000)} seconds.`,
  });
}
