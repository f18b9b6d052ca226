import { describe, expect, test } from "vitest";
import { KitError } from "../base/kit-error.ts";
import { errorCodes, storeUnavailable } from "../protocol/error-code.ts";
import { toErrorReply } from "./reply.ts";

test("every code is answered with its status, in the envelope", () => {
  for (const [code, { status }] of Object.entries(errorCodes)) {
    const reply = toErrorReply(new KitError({ code, message: "Said to anybody.", hint: "Kept." }), {
      dev: false,
    });
    expect(reply.status).toBe(status);
    const { meta, ...error } = JSON.parse(reply.body).error;
    expect(error).toEqual({ type: code, message: "Said to anybody.", details: expect.any(String) });
    expect(meta === undefined).toBe(code !== "invalid_request");
  }
});

test("any other thrown value is an internal error without details", () => {
  const foreign = new KitError({ code: "made_up", message: "secret" });
  for (const thrown of [new Error("secret"), foreign, "secret", undefined, { message: "secret" }]) {
    const reply = toErrorReply(thrown, { dev: false });
    expect(reply.status).toBe(500);
    expect(reply.body).not.toContain("secret");
  }
});

test("an error of another copy of kit keeps its code", async () => {
  // A query in its address makes a second module of the same file.
  const address = "../base/kit-error.ts?second";
  const other = (await import(address)) as { readonly KitError: typeof KitError };
  expect(other.KitError).not.toBe(KitError);
  const error = new other.KitError({ code: "conflict", message: "Taken.", meta: { key: "k" } });
  const reply = toErrorReply(error, { dev: false });
  expect([reply.status, JSON.parse(reply.body).error]).toEqual([
    409,
    { type: "conflict", message: "Taken.", details: "", meta: { key: "k" } },
  ]);
});

describe("an object that forges the mark of kit's errors", () => {
  const mark = Symbol.for("kit.error");
  const forged = (fields: object): unknown => Object.assign(new Error("forged"), { [mark]: true }, fields);
  const throwing = (name: string): unknown =>
    Object.defineProperty(forged({ code: "conflict" }), name, {
      get() {
        throw new Error("secret");
      },
    });
  let calls = 0;
  const changing = Object.defineProperty(forged({}), "code", {
    get: () => (calls++ < 1 ? "conflict" : "made_up"),
  });

  test.each([
    ["a plain object", { [mark]: true, code: "unauthorized", message: "secret" }],
    [
      "an object with an error's prototype",
      Object.assign(Object.create(KitError.prototype), { code: "conflict" }),
    ],
    ["a proxy of one", new Proxy(new KitError({ code: "conflict", message: "secret" }), {})],
    ["a code that kit does not have", forged({ code: "made_up", message: "secret", status: 200 })],
    ["a code of a prototype", forged({ code: "constructor", message: "secret" })],
    ["a code that is not text", forged({ code: 200, message: "secret" })],
    ["a message that is not text", forged({ code: "conflict", message: { secret: 1 } })],
    ["a code that throws", throwing("code")],
    ["a message that throws", throwing("message")],
    ["a meta that throws", throwing("meta")],
    ["a code that changes", changing],
  ])("sets no status and reveals nothing: %s", (_what, thrown) => {
    const reply = toErrorReply(thrown, { dev: false });
    expect(reply.status).toBe(500);
    expect(reply.body).not.toContain("secret");
  });

  test.each([
    ["issues", { issues: [null, 1, { path: {}, message: () => "x" }] }],
    ["allow", { allow: ["GET\r\nx-forged: 1"] }],
    ["retry_after_s", { retry_after_s: "1\r\nx-forged: 1" }],
  ])("meta of a project's error reaches no header and does not break the reply: %s", (_name, meta) => {
    const reply = toErrorReply(new KitError({ code: "conflict", message: "No.", meta }), { dev: false });
    expect([reply.status, Object.keys(reply.headers)]).toEqual([
      409,
      expect.not.arrayContaining(["allow", "retry-after"]),
    ]);
  });
});

test("meta becomes headers and details", () => {
  const issues = [
    { path: "body.format", message: "is required" },
    { path: "body.x", message: "is not known here" },
  ];
  const invalid = toErrorReply(new KitError({ code: "invalid_request", message: "No.", meta: { issues } }), {
    dev: false,
  });
  expect(JSON.parse(invalid.body).error).toMatchObject({
    details: "body.format: is required; body.x: is not known here",
    meta: { issues },
  });
  const busy = new KitError({ code: "too_many_requests", message: "Busy.", meta: { retry_after_s: 3 } });
  expect(toErrorReply(busy, { dev: false }).headers["retry-after"]).toBe("3");
  const soon = new KitError({ code: "unavailable", message: "Soon.", meta: { retry_after_s: 0.2 } });
  expect(toErrorReply(soon, { dev: false }).headers["retry-after"]).toBe("1");
});

test("an invalid request has issues, even if no field is wrong", () => {
  const message = 'There is no role named "nope".';
  const reply = toErrorReply(new KitError({ code: "invalid_request", message, meta: { run_id: "r" } }), {
    dev: false,
  });
  expect(JSON.parse(reply.body).error).toEqual({
    type: "invalid_request",
    message,
    details: "",
    meta: { run_id: "r", issues: [{ path: "request", message }] },
  });
});

test("details that are not JSON are left out, and the rest is sent", () => {
  const circle: Record<string, unknown> = { count: 1n };
  circle.self = circle;
  const reply = toErrorReply(new KitError({ code: "conflict", message: "No.", meta: circle }), {
    dev: false,
  });
  expect([reply.status, JSON.parse(reply.body).error]).toEqual([
    409,
    { type: "conflict", message: "No.", details: "" },
  ]);
});

test("in development, the reply has all details, including circular causes", () => {
  const cause = new Error("deep");
  cause.cause = cause;
  const error = new KitError({ code: "unavailable", message: "No.", hint: "Try this.", cause });
  const { dev } = JSON.parse(toErrorReply(error, { dev: true }).body).error;
  expect(dev).toMatchObject({ hint: "Try this.", stack: expect.any(String), cause: { message: "deep" } });
});

test("in development, a refused request also gets the hint, but no stack", () => {
  for (const [code, { status }] of Object.entries(errorCodes)) {
    if (status >= 500) continue;
    const error = new KitError({ code, message: "No.", hint: "Add the name.", cause: new Error("deep") });
    const { body } = toErrorReply(error, { dev: true });
    expect(JSON.parse(body).error.dev).toEqual({ hint: "Add the name." });
    expect(body).not.toContain(import.meta.dirname);
    const plain = toErrorReply(new KitError({ code, message: "No." }), { dev: true });
    expect(JSON.parse(plain.body).error).not.toHaveProperty("dev");
  }
});

test("in development, a stack starts with the project's own code", () => {
  const error = new Error("Odd\nin two lines");
  const kit = new URL("./reply.ts", import.meta.url).href;
  const frames = [
    `    at run (${kit}:1:1)`,
    "    at step (file:///srv/shop/src/workflows/release.ts:3:1)",
    "    at x (file:///srv/shop/node_modules/left/pad.js:1:1)",
    "    at process (node:internal/process:1:1)",
    "    at async file:///srv/shop/src/agents/_help.ts:9:1",
  ];
  error.stack = ["Error: Odd", "in two lines", ...frames].join("\n");
  const { stack } = JSON.parse(toErrorReply(error, { dev: true }).body).error.dev;
  const order = [1, 4, 0, 2, 3].map((at) => frames[at]);
  expect(stack.split("\n")).toEqual(["Error: Odd", "in two lines", ...order]);
});

test("in development, an unreadable value is reported as far as possible", () => {
  const bare: unknown = Object.create(null);
  const sly = Object.defineProperty(new Error("x"), "stack", {
    get() {
      throw new Error("no");
    },
  });
  for (const thrown of [bare, sly, Symbol("s"), null]) {
    const reply = toErrorReply(thrown, { dev: true });
    expect([reply.status, JSON.parse(reply.body).error.dev]).toEqual([500, { thrown: expect.any(String) }]);
  }
});

test("the details of a 503 name the unavailable store and since when, and every transient error has a time to retry after", () => {
  const since = Date.parse("2026-11-22T10:00:00.000Z");
  const away = storeUnavailable({ store: "The session store", reason: "it is locked", hint: "", since });
  expect(JSON.parse(toErrorReply(away, { dev: false }).body).error).toMatchObject({
    details: "The session store is away since 2026-11-22T10:00:00.000Z. Try again in 5 seconds.",
    meta: { store: "The session store", since: "2026-11-22T10:00:00.000Z", retry_after_s: 5 },
  });
  const closing = new KitError({ code: "unavailable", message: "Stopping.", meta: { retry_after_s: 0.4 } });
  expect(JSON.parse(toErrorReply(closing, { dev: false }).body).error.details).toBe("Try again in 1 second.");
});
