import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { KitError } from "../../base/kit-error.ts";

/** Ticks per idle timeout: silence is noticed at most one tick late. */
const ticks = 10;

export type Reader = ReadableStreamDefaultReader<LanguageModelV4StreamPart>;

interface WatchOptions {
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
  readonly #onAbort = (): void => this.stop(this.#options.signal.reason);
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
    options.signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** Whether the caller aborted, as opposed to a silent provider. */
  get aborted(): boolean {
    return this.#options.signal.aborted;
  }

  /** Starts a call; the provider gets the returned signal. `refuse` is called if the call is stopped before its answer starts. */
  begin(refuse: (reason: unknown) => void): AbortSignal {
    if (this.#controller.signal.aborted) this.#controller = new AbortController();
    this.stopped = undefined;
    this.#runs = true;
    this.#silentTicks = 0;
    this.#timer ??= setInterval(() => this.#tick(), this.#options.idleTimeoutMs / ticks);
    if (this.aborted) this.#onAbort();
    this.#refuse = refuse;
    return this.#controller.signal;
  }

  /** Notes the reader of the answer, which has started. */
  reads(reader: Reader): void {
    this.#refuse = undefined;
    this.#reader = reader;
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
    // The timer keeps running between calls, so the first tick can come less than a full tick after `begin`.
    if (this.#silentTicks > ticks) this.stop(idleError(this.#options.idleTimeoutMs));
  }
}

function idleError(idleTimeoutMs: number): KitError {
  return new KitError({
    code: "model_timeout",
    message: `The model sent nothing for ${Math.round(idleTimeoutMs / 1000)} seconds.`,
  });
}
