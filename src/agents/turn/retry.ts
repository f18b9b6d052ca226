import type { Clock } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import type { EventBody } from "../../protocol/event.ts";

/** When a failed model call is repeated. */
export interface ModelRetryPolicy {
  /** Attempts in all, the first included. */
  readonly attempts: number;
  readonly baseDelayMs: number;
  readonly maxDelayMs: number;
}

export const defaultModelRetryPolicy: ModelRetryPolicy = {
  attempts: 4,
  baseDelayMs: 500,
  maxDelayMs: 30_000,
};

/** The classification of a failed model call. `retryAfterMs` is the provider's request. */
export interface ModelFailure {
  readonly error: KitError;
  readonly retryable: boolean;
  readonly overflow: boolean;
  readonly retryAfterMs: number | undefined;
}

// Error texts of providers for a prompt that exceeds the model's window.
const overflowTexts =
  /context.{0,20}(length|window|limit)|prompt is too long|too many tokens|maximum.{0,30}tokens|input.{0,20}too long|exceeds.{0,40}token/i;

/**
 * Reads the error of a provider, in the shapes of the AI SDK (`statusCode`, `responseHeaders`) and of
 * `fetch`. The message of the result names the status only: bodies of providers may hold secrets.
 */
function toModelFailure(error: unknown, now: number): ModelFailure {
  if (error instanceof KitError) {
    return {
      error,
      retryable: error.code === "model_timeout" || error.code === "model_error",
      overflow: false,
      retryAfterMs: undefined,
    };
  }
  // A broken stream carries status 200: the connection failed.
  const statusCode = numberOf(error, "statusCode");
  const status = statusCode !== undefined && statusCode >= 400 ? statusCode : undefined;
  const body =
    typeof error === "object" && error !== null && "responseBody" in error ? String(error.responseBody) : "";
  const text = error instanceof Error ? error.message : String(error);
  const overflow =
    (status === undefined || status === 400 || status === 413) && overflowTexts.test(`${text} ${body}`);
  return {
    error: new KitError({
      code: overflow
        ? "context_overflow"
        : status === 408 || status === 504
          ? "model_timeout"
          : "model_error",
      message: overflow
        ? "The conversation is longer than the model's window."
        : status === undefined
          ? "The model could not be reached, or its answer could not be read."
          : `The model's provider answered with status ${status}.`,
      hint: text,
      cause: error,
    }),
    // Without a status the connection broke, which is transient. Other 4xx are permanent.
    retryable:
      !overflow &&
      (status === undefined ? true : status === 408 || status === 409 || status === 429 || status >= 500),
    overflow,
    retryAfterMs: retryAfterMs(error, now),
  };
}

/** Whether and when a failed call is retried, and the event that reports it. */
export interface RetryPlan {
  readonly failure: ModelFailure;
  readonly retries: boolean;
  readonly delayMs: number;
  readonly event: Extract<EventBody, { type: "error" }>;
}

/** Plans the retry of a failed call; `attempt` counts from 1. */
export function planRetry(
  error: unknown,
  attempt: number,
  { clock, retry }: { readonly clock: Clock; readonly retry: ModelRetryPolicy },
): RetryPlan {
  const failure = toModelFailure(error, clock.now());
  const retries = failure.retryable && attempt < retry.attempts && withinPatience(failure, retry);
  const delayMs = retries ? retryDelayMs(failure, attempt, retry) : 0;
  const { code, message } = failure.error;
  return {
    failure,
    retries,
    delayMs,
    event: {
      type: "error",
      error: { type: isModelCode(code) ? code : "model_error", message },
      will_retry: retries,
      ...(retries ? { retry_in_ms: delayMs } : undefined),
    },
  };
}

// A provider that asks for more than a few minutes has a lasting problem.
function withinPatience({ retryAfterMs }: ModelFailure, policy: ModelRetryPolicy): boolean {
  return retryAfterMs === undefined || retryAfterMs <= policy.maxDelayMs * 4;
}

function isModelCode(code: string): code is "model_timeout" | "context_overflow" {
  return code === "model_timeout" || code === "context_overflow";
}

/** Exponential backoff with full jitter, or longer if the provider asks for it. */
function retryDelayMs(failure: ModelFailure, attempt: number, policy: ModelRetryPolicy): number {
  const ceiling = Math.min(policy.maxDelayMs, policy.baseDelayMs * 2 ** (attempt - 1));
  return Math.max(failure.retryAfterMs ?? 0, Math.round(Math.random() * ceiling));
}

/** Waits before the next attempt; rejects with `signal.reason` when the signal fires first. */
export async function waitToRetry(
  delayMs: number,
  options: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  await options.clock.sleep(delayMs, options.signal);
}

function retryAfterMs(error: unknown, now: number): number | undefined {
  if (typeof error !== "object" || error === null || !("responseHeaders" in error)) return undefined;
  const headers = error.responseHeaders;
  if (typeof headers !== "object" || headers === null) return undefined;
  const exact = Number((headers as Record<string, unknown>)["retry-after-ms"]);
  if (Number.isFinite(exact) && exact >= 0) return exact;
  const value = (headers as Record<string, unknown>)["retry-after"];
  if (typeof value !== "string") return undefined;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000);
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

function numberOf(error: unknown, name: string): number | undefined {
  const value =
    typeof error === "object" && error !== null ? (error as Record<string, unknown>)[name] : undefined;
  return typeof value === "number" ? value : undefined;
}
