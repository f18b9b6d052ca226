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

test("a provider's answer is not in the cause", () => {
  const cause = new Error("Incorrect API key: sk-1234");
  for (const code of ["model_error", "model_timeout", "context_overflow"]) {
    expect(causeOf(new KitError({ code, message: "The model failed.", cause }), plain)).toBeUndefined();
  }
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
