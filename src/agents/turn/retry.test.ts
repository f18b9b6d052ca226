import { describe, expect, onTestFinished, test, vi } from "vitest";
import { KitError } from "../../base/kit-error.ts";
import { createManualClock } from "../../testing/manual-clock.ts";
import { planRetry, type RetryPlan } from "./retry.ts";

const retry = { attempts: 4, baseDelayMs: 500, maxDelayMs: 30_000 };

interface Said {
  readonly statusCode?: number;
  readonly message?: string;
  readonly responseBody?: string;
  readonly responseHeaders?: unknown;
}

function plan({ message = "no", ...said }: Said, attempt = 1): RetryPlan {
  return planRetry(Object.assign(new Error(message), said), attempt, { clock: createManualClock(), retry });
}

const classified = (said: Said) => {
  const { retries, event } = plan(said);
  return [event.error.type, retries];
};

test.each([
  [undefined, "model_error", true],
  [200, "model_error", true],
  [400, "model_error", false],
  [401, "model_error", false],
  [403, "model_error", false],
  [404, "model_error", false],
  [408, "model_timeout", true],
  [409, "model_error", false],
  [413, "model_error", false],
  [422, "model_error", false],
  [429, "model_error", true],
  [499, "model_error", false],
  [500, "model_error", true],
  [503, "model_error", true],
  [504, "model_timeout", true],
  [529, "model_error", true],
])("a provider's answer with status %s is a %s, retried: %s", (statusCode, type, retries) => {
  expect(classified(statusCode === undefined ? {} : { statusCode })).toEqual([type, retries]);
});

describe("a prompt that exceeds the model's window", () => {
  test.each([
    "This model's maximum context length is 8192 tokens.",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "Too many tokens in the request",
    "The input is too long for the requested model.",
    "The input exceeds the limit of 1000 tokens",
  ])("is recognized by the provider's message or response body: %s", (text) => {
    for (const statusCode of [400, 413]) {
      expect(classified({ statusCode, message: text })).toEqual(["context_overflow", false]);
      expect(classified({ statusCode, responseBody: `{"message":"${text}"}` })).toEqual([
        "context_overflow",
        false,
      ]);
    }
    expect(classified({ message: text })).toEqual(["context_overflow", false]);
    expect(plan({ message: text }).failure.overflow).toBe(true);
  });

  test("is not assumed when the provider refuses for another reason in similar words", () => {
    for (const statusCode of [429, 500])
      expect(classified({ statusCode, message: "too many tokens per minute" })).toEqual([
        "model_error",
        true,
      ]);
    expect(classified({ statusCode: 401, message: "too many tokens" })).toEqual(["model_error", false]);
  });
});

test.each([
  ["model_timeout", true],
  ["model_error", true],
  ["context_overflow", false],
  ["budget_exceeded", false],
  ["invalid_request", false],
] as const)("kit's own error %s is retried: %s", (code, retries) => {
  const failed = planRetry(new KitError({ code, message: "m" }), 1, { clock: createManualClock(), retry });
  expect(failed.retries).toBe(retries);
  expect(failed.event.error.message).toBe("m");
});

test("a thrown value that is no error counts as an unreachable model", () => {
  for (const thrown of ["gone", null, undefined, 7, { statusCode: "500", responseBody: null }]) {
    const { event, retries } = planRetry(thrown, 1, { clock: createManualClock(), retry });
    expect([event.error.message, retries]).toEqual([
      "The model could not be reached, or its answer could not be read.",
      true,
    ]);
  }
});

test("the last attempt is not retried, and its event says so", () => {
  expect(plan({ statusCode: 500 }, 3).event).toMatchObject({
    will_retry: true,
    retry_in_ms: expect.any(Number),
  });
  const { event, delayMs } = plan({ statusCode: 500 }, 4);
  expect([event.will_retry, "retry_in_ms" in event, delayMs]).toEqual([false, false, 0]);
});

test("the delay doubles with each attempt up to its limit, and is a random part of that", () => {
  const chance = vi.spyOn(Math, "random").mockReturnValue(1);
  onTestFinished(() => chance.mockRestore());
  const patient = { ...retry, attempts: 20 };
  const wait = (attempt: number) =>
    planRetry(new Error("gone"), attempt, { clock: createManualClock(), retry: patient }).delayMs;
  expect([1, 2, 3, 7, 19].map(wait)).toEqual([500, 1_000, 2_000, 30_000, 30_000]);
  chance.mockReturnValue(0.5);
  expect(wait(1)).toBe(250);
});

describe("a provider that sends a retry-after header", () => {
  const wait = (responseHeaders: unknown) => {
    const { retries, delayMs } = plan({ statusCode: 429, responseHeaders });
    return retries ? delayMs : "not at all";
  };
  const now = createManualClock().now();

  test("is called again only after that time", () => {
    expect(wait({ "retry-after": "7" })).toBe(7_000);
    expect(wait({ "retry-after-ms": "1900" })).toBe(1_900);
    expect(wait({ "retry-after-ms": "1900", "retry-after": "7" })).toBe(1_900);
    expect(wait({ "retry-after": new Date(now + 9_000).toUTCString() })).toBe(9_000);
  });

  test("is not called again if the time exceeds four times the longest delay", () => {
    expect(wait({ "retry-after": "120" })).toBe(120_000);
    expect(wait({ "retry-after": "121" })).toBe("not at all");
  });

  test("is called again after kit's own delay if the header is unreadable or in the past", () => {
    const past = new Date(now - 60_000).toUTCString();
    for (const headers of [
      { "retry-after": "soon" },
      { "retry-after": "-1" },
      { "retry-after": past },
      { "retry-after": 700 },
      { "retry-after-ms": "-5" },
      { "retry-after-ms": "x" },
      {},
      null,
      "retry-after: 7",
      { "retry-after": "0" },
    ]) {
      expect(wait(headers)).toBeLessThanOrEqual(1_500);
      expect(wait(headers)).toBeGreaterThanOrEqual(1_000);
    }
  });
});

test("calls that were refused because there were too many are repeated after one, two and four seconds at least", () => {
  const floors = [1, 2, 3].map((attempt) => plan({ statusCode: 429 }, attempt).delayMs);
  for (const [at, floor] of [1_000, 2_000, 4_000].entries()) {
    expect(floors[at]).toBeGreaterThanOrEqual(floor);
    expect(floors[at]).toBeLessThanOrEqual(floor * 1.5);
  }
});

describe("an error inside a stream, whose status is 200,", () => {
  const reported = (error: unknown) => {
    const { retries, failure } = planRetry(error, 1, { clock: createManualClock(), retry });
    return [failure.error.code, failure.error.message, retries, failure.error.meta?.retryable] as const;
  };
  const said = "The model's provider reported an error.";

  test.each([
    "invalid_api_key",
    "invalid_request_error",
    "authentication_error",
    "permission_error",
    "not_found_error",
    "model_not_found",
    "INVALID_ARGUMENT",
    "PERMISSION_DENIED",
    "insufficient_quota",
    "content_policy_violation",
  ])("is not retried with the code %s", (code) => {
    for (const error of [
      { message: "no", code },
      { type: "error", error: { type: code, message: "no" } },
    ])
      expect(reported(error)).toEqual(["model_error", said, false, false]);
  });

  test.each([
    "server_error",
    "overloaded_error",
    "rate_limit_exceeded",
    "RESOURCE_EXHAUSTED",
    "api_error",
    "slow_down",
  ])("is retried with the code %s", (code) =>
    expect(reported({ message: "no", code })).toEqual(["model_error", said, true, undefined]),
  );

  test("is read like an answer with the status that it states", () => {
    expect(reported({ message: "no", code: 401 })).toEqual([
      "model_error",
      "The model's provider answered with status 401.",
      false,
      false,
    ]);
    expect(reported({ message: "no", code: 503 })[2]).toBe(true);
    expect(reported({ message: "no", code: "context_length_exceeded" }).slice(0, 3)).toEqual([
      "context_overflow",
      "The conversation is longer than the model's window.",
      false,
    ]);
  });
});

test("a used-up quota is not retried, although its status is that of too many calls", () => {
  const responseBody = JSON.stringify({ error: { message: "Check your plan.", code: "insufficient_quota" } });
  expect(classified({ statusCode: 429, responseBody })).toEqual(["model_error", false]);
});

test("a call that cannot be made, such as one without a key, is not retried", () => {
  const error = Object.assign(new Error("OpenAI API key is missing."), { name: "AI_LoadAPIKeyError" });
  expect(planRetry(error, 1, { clock: createManualClock(), retry }).retries).toBe(false);
});

test("the error's hint has the provider's words, its details the status, the code and the delay", () => {
  const responseBody = JSON.stringify({ error: { message: "Slow down.", code: "rate_limit_exceeded" } });
  const { failure } = plan({ statusCode: 429, responseBody, responseHeaders: { "retry-after": "200" } });
  expect(failure.error).toMatchObject({
    hint: "Slow down.",
    meta: { provider_status: 429, provider_code: "rate_limit_exceeded", retry_after_s: 200 },
  });
});
