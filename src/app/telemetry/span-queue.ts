import type { ReadableSpan, SpanExporter, SpanProcessor } from "@opentelemetry/sdk-trace";
import { thrownText } from "../../base/thrown.ts";

export interface SpanQueueOptions {
  readonly exporter: SpanExporter;
  /** The most spans that wait to be sent. */
  readonly spans: number;
  /** The most spans of one request. */
  readonly batch: number;
  /** How long a span waits for others. */
  readonly delayMs: number;
  /** Receives, at most every 10 seconds, the number of lost spans and the reason. */
  readonly onLost: (spans: number, why: string) => void;
}

/** The time between two reports of lost spans. */
const quietMs = 10_000;
/** The delay after a failed request; it doubles up to the longest. */
const backoffMs = 500;
const longestBackoffMs = 30_000;

/**
 * Sends ended spans in batches, one batch at a time. Its queue is longer than the SDK's, so that bursts and spans
 * for an unavailable receiver fit; spans without room are counted and reported.
 */
export class SpanQueue implements SpanProcessor {
  readonly #options: SpanQueueOptions;
  #waiting: ReadableSpan[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #failures = 0;
  #closed = false;
  #lostSpans = 0;
  #why = "";
  #reportedAt = Number.NEGATIVE_INFINITY;
  #telling: NodeJS.Timeout | undefined;

  constructor(options: SpanQueueOptions) {
    this.#options = options;
  }

  onStart(): void {
    // Only ended spans are sent.
  }

  onEnd(span: ReadableSpan): void {
    if (this.#closed || (span.spanContext().traceFlags & 1) === 0) return;
    if (this.#waiting.length >= this.#options.spans) {
      this.#lose(1, `more than ${this.#options.spans} waited to be sent`);
      return;
    }
    this.#waiting.push(span);
    if (this.#waiting.length === 1) this.#sendAfter(this.#options.delayMs);
    else if (this.#waiting.length === this.#options.batch && this.#failures === 0) this.#sendAfter(0);
  }

  /** Tries once to send all waiting spans; spans that cannot be sent wait again. */
  async forceFlush(): Promise<void> {
    await this.#sending;
    while (this.#waiting.length > 0) {
      const before = this.#failures;
      await this.#send();
      if (this.#failures > before) break;
    }
  }

  async shutdown(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.forceFlush();
    clearTimeout(this.#timer);
    this.#lose(this.#waiting.length, "the receiver could not be reached before the end");
    this.#waiting = [];
    this.#reportLoss();
    await this.#options.exporter.shutdown();
  }

  #sendAfter(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#sending !== undefined) return;
    this.#timer = setTimeout(() => void this.#send(), ms).unref();
  }

  #send(): Promise<void> {
    this.#sending ??= this.#sendBatch().finally(() => {
      this.#sending = undefined;
      if (this.#waiting.length === 0 || this.#closed) return;
      const pause = Math.min(longestBackoffMs, backoffMs * 2 ** (this.#failures - 1));
      this.#sendAfter(
        this.#failures > 0 ? pause : this.#waiting.length < this.#options.batch ? this.#options.delayMs : 0,
      );
    });
    return this.#sending;
  }

  async #sendBatch(): Promise<void> {
    const batch = this.#waiting.splice(0, this.#options.batch);
    if (batch.length === 0) return;
    const error = await this.#export(batch);
    if (error === undefined) {
      this.#failures = 0;
      return;
    }
    this.#failures += 1;
    const free = this.#options.spans - this.#waiting.length;
    // The receiver would refuse the same spans again.
    const retried = isRefusal(error) ? [] : batch.slice(-free);
    this.#waiting.unshift(...retried);
    this.#lose(batch.length - retried.length, reasonOf(error));
  }

  #export(batch: ReadableSpan[]): Promise<Error | undefined> {
    return new Promise((resolve) => {
      try {
        this.#options.exporter.export(batch, ({ code, error }) =>
          resolve(code === 0 ? undefined : (error ?? new Error("The receiver did not take them."))),
        );
      } catch (error) {
        resolve(error instanceof Error ? error : new Error(thrownText(error)));
      }
    });
  }

  #lose(spans: number, why: string): void {
    if (spans === 0) return;
    this.#lostSpans += spans;
    this.#why = why;
    const wait = this.#reportedAt + quietMs - performance.now();
    if (wait <= 0) this.#telling ??= setTimeout(() => this.#reportLoss(), 0).unref();
    else this.#telling ??= setTimeout(() => this.#reportLoss(), wait).unref();
  }

  #reportLoss(): void {
    clearTimeout(this.#telling);
    this.#telling = undefined;
    if (this.#lostSpans === 0) return;
    const lostSpans = this.#lostSpans;
    this.#lostSpans = 0;
    this.#reportedAt = performance.now();
    this.#options.onLost(lostSpans, this.#why);
  }
}

function isRefusal(error: Error): boolean {
  const status = "code" in error ? Number(error.code) : Number.NaN;
  return status >= 400 && status < 500 && status !== 408 && status !== 429;
}

/** Describes the status of an answer, without its body, which can hold anything. */
function reasonOf(error: Error): string {
  const code = "code" in error ? String(error.code) : "";
  if (/^\d{3}$/.test(code)) return `the receiver answered with status ${code}`;
  const cause = error.cause instanceof Error && "code" in error.cause ? String(error.cause.code) : code;
  return `the receiver could not be reached${/^[A-Z_]{3,40}$/.test(cause) ? ` (${cause})` : ""}`;
}
