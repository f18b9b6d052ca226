import type { Clock } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";
import type { ErrorCause } from "../../protocol/error-cause.ts";
import { isRetryableError } from "../../protocol/error-code.ts";
import type { EventBody } from "../../protocol/event.ts";
import {
  hideRepeatedKeys,
  isSpentQuota,
  type ProviderFault,
  readProviderFault,
  statusOfFault,
} from "../../protocol/provider-fault.ts";

/** When a failed model call is repeated. */
export interface ModelRetryPolicy {
  /** Attempts in all, the first included. */
  readonly attempts: number;
  readonly baseDelayMs: number;
  readonly maxDelayMs: number;
  /** Whether the caller has chosen `attempts`: after the last one, nothing tries the call again. */
  readonly isFinal?: boolean | undefined;
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
  /** The provider has refused the call because there were too many. */
  readonly isLimited: boolean;
  readonly retryAfterMs: number | undefined;
}

const maxHintChars = 2_000;

/** The shortest delay after a refusal because of too many calls; doubled with each attempt. */
const limitedDelayMs = 1_000;

// Error texts of providers for a prompt that exceeds the model's window.
const overflowTexts =
  /context.{0,20}(length|window|limit)|prompt is too long|too many tokens|maximum.{0,30}tokens|input.{0,20}too long|exceeds.{0,40}token/i;

// Errors of the AI SDK about the call itself: the same call fails the same way.
const callErrors =
  /^AI_(?:LoadAPIKey|LoadSetting|NoSuchModel|UnsupportedFunctionality|InvalidPrompt|InvalidArgument)Error$/;

/**
 * Reads the error of a model call. The message of the result is safe for any reader and names the status only; the hint has
 * the provider's words, and so has the cause that records keep (`causeOf`).
 */
function toModelFailure(error: unknown, now: number): ModelFailure {
  if (error instanceof KitError) {
    const isOfModel = error.code === "model_timeout" || error.code === "model_error";
    return {
      error,
      retryable: isOfModel && isRetryableError(error),
      overflow: false,
      isLimited: false,
      retryAfterMs: undefined,
    };
  }
  const fault = readProviderFault(error);
  const status = statusOfFault(fault);
  const words = hideRepeatedKeys(fault.message);
  const overflow =
    (status === undefined || status === 400 || status === 413) &&
    (fault.code === "context_length_exceeded" || overflowTexts.test(words));
  const waitMs = retryAfterMs(error, now);
  const retryable = !overflow && canPass(error, status) && !isSpentQuota(fault);
  return {
    error: new KitError({
      code: overflow
        ? "context_overflow"
        : status === 408 || status === 504
          ? "model_timeout"
          : "model_error",
      message: overflow ? "The conversation is longer than the model's window." : messageFor(error, fault),
      hint: words === "" ? undefined : words.slice(0, maxHintChars),
      meta: {
        ...(fault.status === undefined ? {} : { provider_status: fault.status }),
        ...(fault.code === undefined ? {} : { provider_code: hideRepeatedKeys(fault.code) }),
        ...(waitMs === undefined || !retryable ? {} : { retry_after_s: Math.ceil(waitMs / 1_000) }),
        ...(retryable ? {} : { retryable: false }),
      },
      cause: error,
    }),
    retryable,
    overflow,
    isLimited: status === 429,
    retryAfterMs: waitMs,
  };
}

/** Whether the same call can succeed later. Without a status the connection broke, which is transient. */
function canPass(error: unknown, status: number | undefined): boolean {
  if (status !== undefined) return status === 408 || status === 429 || status >= 500;
  return !(error instanceof Error && callErrors.test(error.name));
}

function messageFor(error: unknown, { message, status, code }: ProviderFault): string {
  if (status !== undefined) return `The model's provider answered with status ${status}.`;
  if (error instanceof Error && callErrors.test(error.name)) return "The model could not be called.";
  const isReport = code !== undefined || (isRecord(error) && !(error instanceof Error) && message !== "");
  return isReport
    ? "The model's provider reported an error."
    : "The model could not be reached, or its answer could not be read.";
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
  {
    clock,
    retry,
    failures,
  }: {
    readonly clock: Clock;
    readonly retry: ModelRetryPolicy;
    /** Returns the cause that the event reports. */
    readonly failures?: { causeOf(error: KitError): ErrorCause | undefined } | undefined;
  },
): RetryPlan {
  const read = toModelFailure(error, clock.now());
  const retries = read.retryable && attempt < retry.attempts && withinPatience(read, retry);
  const failure = retries || retry.isFinal !== true ? read : { ...read, error: toFinal(read.error) };
  const delayMs = retries ? retryDelayMs(failure, attempt, retry) : 0;
  const { code, message } = failure.error;
  const cause = failures?.causeOf(failure.error);
  return {
    failure,
    retries,
    delayMs,
    event: {
      type: "error",
      error: {
        type: isModelCode(code) ? code : "model_error",
        message,
        ...(cause === undefined ? {} : { cause }),
      },
      will_retry: retries,
      ...(retries ? { retry_in_ms: delayMs } : undefined),
    },
  };
}

function toFinal({ code, message, hint, meta, cause }: KitError): KitError {
  const described = { code, message, meta: { ...meta, retryable: false }, cause };
  return new KitError(hint === undefined ? described : { ...described, hint });
}

// A provider that asks for more than a few minutes has a lasting problem.
function withinPatience({ retryAfterMs }: ModelFailure, policy: ModelRetryPolicy): boolean {
  return retryAfterMs === undefined || retryAfterMs <= policy.maxDelayMs * 4;
}

function isModelCode(code: string): code is "model_timeout" | "context_overflow" {
  return code === "model_timeout" || code === "context_overflow";
}

/**
 * Exponential backoff with full jitter, or longer if the provider asks for it. After a refusal because of too many calls, at
 * least a second, doubled each time: a shorter wait would only be refused again.
 */
function retryDelayMs(failure: ModelFailure, attempt: number, policy: ModelRetryPolicy): number {
  const factor = 2 ** (attempt - 1);
  const ceiling = Math.min(policy.maxDelayMs, policy.baseDelayMs * factor);
  const chance = Math.round(Math.random() * ceiling);
  const floor = failure.isLimited ? Math.min(policy.maxDelayMs, limitedDelayMs * factor) + chance : 0;
  return Math.max(failure.retryAfterMs ?? 0, chance, floor);
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
