import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { KitError } from "../base/kit-error.ts";
import { type CauseReader, causeLine, causeOf, fromErrorCause } from "./error-cause.ts";

const plain: CauseReader = { clean: (text) => text, place: () => undefined };

describe("causeOf accepts any thrown value and never throws", () => {
  const circle = new Error("round");
  circle.cause = circle;
  const throwing = (...names: readonly string[]): unknown =>
    names.reduce(
      (error, name) =>
        Object.defineProperty(error, name, {
          get() {
            throw new Error("gotcha");
          },
        }),
      new Error("hidden"),
    );
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  class HttpError extends Error {}

  test.each([
    ["an error", new TypeError("no"), { name: "TypeError", message: "no" }],
    ["one of a class without a name", new HttpError("500"), { name: "HttpError", message: "500" }],
    ["a text", "GitHub said 500", { name: "string", message: "GitHub said 500" }],
    ["null", null, { name: "null", message: "null" }],
    ["undefined", undefined, { name: "undefined", message: "undefined" }],
    ["a number", 42n, { name: "bigint", message: "42" }],
    ["a symbol", Symbol("s"), { name: "symbol", message: "Symbol(s)" }],
    ["an object", { code: "E1", reason: "no" }, { name: "Object", message: "E1" }],
    [
      "an object without a prototype",
      Object.assign(Object.create(null), { a: 1 }),
      { name: "object", message: '{"a":1}' },
    ],
    [
      "an error without words",
      Object.assign(new Error(""), { code: "ECONNREFUSED" }),
      { name: "Error", message: "ECONNREFUSED" },
    ],
    ["a circle", circle, { name: "Error", message: "round" }],
    ["getters that throw", throwing("message", "name", "stack", "cause"), { name: "Error", message: "" }],
    ["a proxy that was revoked", revoked.proxy, { name: "object", message: "" }],
    [
      "causes",
      new Error("outer", { cause: new Error("inner", { cause: "text" }) }),
      {
        name: "Error",
        message: "outer",
        cause: { name: "Error", message: "inner", cause: { name: "string", message: "text" } },
      },
    ],
    [
      "several",
      new AggregateError([new Error("a"), "b"], "both"),
      {
        name: "AggregateError",
        message: "both",
        errors: [
          { name: "Error", message: "a" },
          { name: "string", message: "b" },
        ],
      },
    ],
  ])("%s", (_what, thrown, expected) => {
    expect(causeOf(thrown, plain)).toEqual(expected);
  });

  test("any value", () => {
    fc.assert(
      fc.property(
        fc.anything({ withNullPrototype: true, withBigInt: true, withSymbol: true } as object),
        (thrown) => {
          const cause = causeOf(thrown, plain);
          expect(JSON.parse(JSON.stringify(cause))).toEqual(cause);
        },
      ),
    );
  });
});

test("a cause is cut to a size that fits into any record", () => {
  let deep: unknown = "bottom";
  for (let level = 0; level < 100; level += 1) deep = new Error("x".repeat(10_000), { cause: deep });
  const wide = new AggregateError(
    Array.from({ length: 1_000 }, () => deep),
    "y".repeat(10_000_000),
  );
  expect(JSON.stringify(causeOf(wide, plain)).length).toBeLessThan(100_000);
  expect(causeOf(new Error("z".repeat(10_000_000)), plain)?.message).toHaveLength(2_000);
});

test("a secret is removed before the text is cut, and the place comes from the stack, not from the message", () => {
  const secret = "token-0123456789";
  const reader: CauseReader = {
    clean: (text) => text.replaceAll(secret, "***"),
    place: (stack) =>
      stack.includes("forged") ? { path: "forged.ts", line: 1 } : { path: "src/a.ts", line: 7 },
  };
  const cause = causeOf(
    new Error(`${"x".repeat(1_995)}${secret}\n    at forged (src/forged.ts:1:1)`),
    reader,
  );
  expect(cause).toMatchObject({ path: "src/a.ts", line: 7 });
  expect(cause?.message).not.toContain("token");
});

test("the cause of a KitError is the error that it wraps", () => {
  const thrown = new Error("GitHub said 500");
  const step = new KitError({ code: "internal_error", message: 'The step "a" failed.', cause: thrown });
  const run = new KitError({
    code: "internal_error",
    message: step.message,
    meta: { run_id: "r" },
    cause: step,
  });
  expect(causeOf(run, plain)).toEqual({ name: "Error", message: "GitHub said 500" });
  expect(causeOf(new KitError({ code: "conflict", message: "Taken." }), plain)).toBeUndefined();
  const placed = { ...plain, place: () => ({ path: "src/a.ts", line: 3 }) };
  expect(causeOf(new KitError({ code: "conflict", message: "Taken." }), placed)).toEqual({
    name: "KitError",
    message: "Taken.",
    path: "src/a.ts",
    line: 3,
  });
});

describe("the cause of a model's error has the provider's words and code", () => {
  const modelCodes = ["model_error", "model_timeout", "context_overflow"];
  const read = (cause: unknown, code = "model_error") =>
    causeOf(new KitError({ code, message: "The model failed.", cause }), plain);
  const call = (fields: object, message = "Unauthorized") =>
    Object.assign(new Error(message), { name: "AI_APICallError", ...fields });

  test("and nothing else of its answer", () => {
    const body = { error: { message: "No such model.", code: "model_not_found" }, prompt: "private" };
    for (const code of modelCodes)
      expect(read(call({ statusCode: 404, responseBody: JSON.stringify(body) }), code)).toEqual({
        name: "ProviderError",
        message: "No such model.",
        status: 404,
        code: "model_not_found",
      });
    expect(read(call({ statusCode: 502, responseBody: "<html>private</html>" }, "Bad Gateway"))).toEqual({
      name: "ProviderError",
      message: "Bad Gateway",
      status: 502,
    });
    const unread = { name: "AI_TypeValidationError", value: { private: 1 } };
    expect(read(Object.assign(new Error('Type validation failed: {"private":1}'), unread))).toEqual({
      name: "ProviderError",
      message: "The answer does not have the expected form.",
    });
  });

  test.each([
    ["OpenAI", { error: { message: "no", type: "t", code: "c", param: null } }, "c"],
    [
      "OpenAI without a code",
      { error: { message: "no", type: "invalid_request_error", code: null } },
      "invalid_request_error",
    ],
    ["Anthropic", { type: "error", error: { type: "overloaded_error", message: "no" } }, "overloaded_error"],
    ["Google", [{ error: { code: 429, message: "no", status: "RESOURCE_EXHAUSTED" } }], "RESOURCE_EXHAUSTED"],
    [
      "OpenAI's failed response",
      { type: "response.failed", response: { error: { code: "server_error", message: "no" } } },
      "server_error",
    ],
    ["Ollama", { error: "no" }, undefined],
    ["FastAPI", { detail: "no" }, undefined],
  ])("in the shape of %s", (_provider, body, code) => {
    for (const cause of [
      call({ statusCode: 429, responseBody: JSON.stringify(body) }),
      call({ statusCode: 429, value: body }),
    ])
      expect(read(cause)).toEqual({ name: "ProviderError", message: "no", status: 429, code });
    expect(read(body)).toMatchObject({ message: "no" });
  });

  test.each([
    "Incorrect API key provided: sk-proj-abcdefghijkl.",
    "Incorrect API key provided: sk-abcd***********wxyz.",
    "Incorrect API key provided: abcd****wxyz.",
    "invalid x-api-key: 8f14e45fceea167a",
    "Bearer eyJhbGciOi.abc is not valid",
    "API key not valid: AIzaSyA1234567890abcdef",
    "token=ghp_0123456789abcdef is revoked",
  ])("without the key in: %s", (message) => {
    const { message: words } = read(call({ statusCode: 401 }, message)) ?? { message: "" };
    expect(words).toContain("[secret]");
    expect(words).not.toMatch(/abcd|wxyz|8f14|eyJ|AIza|ghp_/);
  });

  test("and keeps words that only look a little like keys", () => {
    for (const message of [
      "The model `claude-sonnet-4-5-20250929` does not exist.",
      "Rate limit reached for gpt-5 in organization org-7 on tokens per min (TPM): Limit 30000, Used 29000.",
      "max_tokens: 8192 is above the limit. Request id req_011CSHoEeqs5C35K2UUqR7Fy.",
    ])
      expect(read(call({}, message))?.message).toBe(message);
  });

  test("cut to 2,000 characters, and the same after a journey through a record", () => {
    const cause = read(call({ statusCode: 400, data: { error: { message: "x".repeat(9_000), code: "c" } } }));
    expect(cause?.message).toHaveLength(2_000);
    expect(
      causeOf(
        new KitError({
          code: "internal_error",
          message: "m",
          cause: fromErrorCause(cause ?? { name: "", message: "" }),
        }),
        plain,
      ),
    ).toEqual(cause);
  });

  test("also after a copy without secrets has lost the fields of the answer", () => {
    const error = new KitError({
      code: "model_error",
      message: "m",
      hint: "Key [secret] is wrong.",
      meta: { provider_status: 401, provider_code: "invalid_api_key" },
      cause: call({}, "Unauthorized"),
    });
    expect(causeOf(error, plain)).toEqual({
      name: "ProviderError",
      message: "Key [secret] is wrong.",
      status: 401,
      code: "invalid_api_key",
    });
  });

  test("with the place of a model that is code of the project", () => {
    const placed = { ...plain, place: () => ({ path: "src/model.ts", line: 3 }) };
    const error = new KitError({ code: "model_error", message: "m", cause: new TypeError("no field") });
    expect(causeOf(error, placed)).toEqual({
      name: "TypeError",
      message: "no field",
      path: "src/model.ts",
      line: 3,
    });
  });
});

test("a cause from a record converts to an error and back unchanged", () => {
  const reader: CauseReader = {
    ...plain,
    place: (stack) => {
      const [, path, line] = /at (\S+):(\d+)/.exec(stack) ?? [];
      return path === undefined ? undefined : { path, line: Number(line) };
    },
  };
  const cause = {
    name: "HttpError",
    message: "GitHub said 500",
    path: "src/a.ts",
    line: 7,
    cause: {
      name: "AggregateError",
      message: "",
      errors: [{ name: "Error", message: "a", path: "src/b.ts", line: 1 }],
    },
  };
  expect(causeOf(fromErrorCause(cause), reader)).toEqual(cause);
  expect(causeLine(cause)).toBe(
    "GitHub said 500 (src/a.ts:7); caused by: AggregateError; caused by: a (src/b.ts:1)",
  );
});
