import { readFile } from "node:fs/promises";
import { afterAll, expect, test } from "vitest";
import { KitError } from "../base/kit-error.ts";
import { processorMs } from "../testing/processor-time.ts";
import type { PythonCall } from "./contract.ts";
import { createPython } from "./create-python.ts";
import { PythonException } from "./python-error.ts";

const python = createPython({ maxRunning: 1 });
afterAll(() => python.close());
const session = python.createSession();

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test("functions get positional and keyword arguments, and can be slow", async () => {
  const functions = {
    add: (a: number, b: number) => a + b,
    later: async (value: string, { ms }: { readonly ms: number }) => {
      await later(ms);
      return `${value}!`;
    },
    described: {
      signature: "described(*args, **kwargs)",
      execute: ({ args, kwargs }: PythonCall) => [args, { ...kwargs }],
    },
    nothing: () => undefined,
  };
  const code = `
def twice(n):
    return add(n, n)
[twice(2), [add(i, 1) for i in range(3)], later('yes', ms=20), described(1, b=2), nothing() is None, nothing]
`;
  const { result } = await session.run(code, { functions });
  expect(result).toEqual([4, [1, 2, 3], "yes!", [[1], new Map([["b", 2]])], true, "host nothing"]);
});

test("a thousand calls take the host a fraction of a second", async () => {
  const started = processorMs();
  const { result } = await session.run("sum([next(i) for i in range(1000)])".replace("next", "step"), {
    functions: { step: (n: number) => n },
  });
  expect(result).toBe(499_500);
  expect(processorMs() - started).toBeLessThan(3_000);
});

test("a name bound by the program replaces a host function", async () => {
  const functions = { f: () => "host" };
  expect((await session.run("f = lambda: 'own'\nf()", { functions })).result).toBe("own");
  expect((await session.run("f()", {})).result).toBe("own");
  expect((await python.createSession().run("f()", { functions })).result).toBe("host");
});

test("an error of a function is an exception of the right type, without stack and paths", async () => {
  const system = await readFile("/etc/kit/no-such-file").catch((error: unknown) => error);
  const cases: readonly (readonly [unknown, string, string])[] = [
    [new PythonException("KeyError", "no user"), "KeyError", "'no user'"],
    [new PythonException("MyError", "own"), "RuntimeError", "MyError: own"],
    [new TypeError("not a number"), "TypeError", "not a number"],
    [new RangeError("too far"), "ValueError", "too far"],
    [new Error(`broken at ${import.meta.filename}:3`), "RuntimeError", "broken at <path>"],
    [
      new Error("GET /api/users failed: 1/2, http://a.b/c"),
      "RuntimeError",
      "GET /api/users failed: 1/2, http://a.b/c",
    ],
    [system, "FileNotFoundError", "ENOENT: no such file or directory"],
    [new KitError({ code: "forbidden", message: "No." }), "PermissionError", "No."],
    [new DOMException("slow", "TimeoutError"), "TimeoutError", "slow"],
    ["just text", "RuntimeError", "just text"],
    [undefined, "RuntimeError", "undefined"],
  ];
  for (const [thrown, type, message] of cases) {
    const functions = {
      fail: async () => {
        throw thrown;
      },
    };
    const code = `try:\n    fail()\nexcept ${type} as e:\n    caught = [str(e), isinstance(e, Exception)]\ncaught`;
    expect((await session.run(code, { functions })).result).toEqual([message, true]);
    const uncaught = await session.run("x = 1\nfail()", { functions }).catch((error: unknown) => error);
    expect(uncaught).toMatchObject({ exception: { type } });
    const traceback = (uncaught as { readonly traceback: string }).traceback;
    expect(traceback).toContain('File "main.py", line 2, in <module>\n    fail()');
    expect(traceback).not.toMatch(/\.ts\b|node:/);
  }
});

test("a value that Python cannot accept is a TypeError or ValueError in the calling code", async () => {
  const code = "try:\n    give()\nexcept RuntimeError as e:\n    r = str(e)\nr";
  expect((await session.run(code, { functions: { give: () => () => 1 } })).result).toBe(
    "Python cannot accept the result of give(): it is a function.",
  );
  const large = "try:\n    give('x' * 4000001)\nexcept ValueError as e:\n    r = str(e)\nr";
  expect((await session.run(large, { functions: { give: () => 1 } })).result).toBe(
    "The call of give() holds more than 4,000,000 characters.",
  );
});

test("waiting for the host does not count as the program's time, but computing afterwards does", async () => {
  const limits = { resourceLimits: { maxDurationSecs: 2 }, functions: { wait: () => later(1_000) } };
  expect((await session.run("n = 0\nwhile n < 3:\n    wait()\n    n += 1\nn", limits)).result).toBe(3);
  const endless = session.run("wait()\nwhile True: pass", limits);
  await expect(endless).rejects.toMatchObject({ exception: { type: "TimeoutError" } });
});

test("a function that does not answer in time is a TimeoutError, and its signal fires", async () => {
  const reported: unknown[] = [];
  const functions = {
    never: {
      timeoutMs: 100,
      execute: ({ signal }: PythonCall) =>
        new Promise(() => signal.addEventListener("abort", () => reported.push(signal.reason))),
    },
  };
  const code = "try:\n    never()\nexcept TimeoutError as e:\n    r = str(e)\nr";
  expect((await session.run(code, { functions })).result).toBe("never() gave no answer within 0.1 seconds");
  expect(reported).toHaveLength(1);
});

test("an abort during a host call stops both, and the variables stay unchanged", async () => {
  await session.run("kept = 1");
  const controller = new AbortController();
  const reported: unknown[] = [];
  const functions = {
    never: {
      execute: ({ signal }: PythonCall) => {
        setTimeout(() => controller.abort("enough"), 50);
        return new Promise(() => signal.addEventListener("abort", () => reported.push(signal.reason)));
      },
    },
  };
  await expect(session.run("kept = 2\nnever()", { functions, signal: controller.signal })).rejects.toBe(
    "enough",
  );
  expect(reported).toEqual(["enough"]);
  expect((await session.run("kept")).result).toBe(1);
});

test("other programs compute while one waits for the host, also one that the host starts", async () => {
  const inner = python.createSession();
  const functions = { inner: async (code: string) => (await inner.run(code)).result };
  expect((await session.run("[inner('x = 20'), inner('x + 1')]", { functions })).result).toEqual([null, 21]);
});

test("a function cannot use the session that waits for it", async () => {
  const functions = { again: async () => (await session.run("1")).result };
  const code = "try:\n    again()\nexcept RuntimeError as e:\n    r = str(e)\nr";
  expect((await session.run(code, { functions })).result).toContain("cannot use the same Python session");
});

test("invalid names, and names used twice, are refused", async () => {
  for (const name of ["a b", "import", "", "__kit_f"]) {
    await expect(session.run("1", { functions: { [name]: () => 1 } })).rejects.toMatchObject({
      code: "invalid_request",
    });
  }
  await expect(session.run("1", { functions: { a: () => 1 }, inputs: { a: 1 } })).rejects.toThrow(
    '"a" is both a function and an input.',
  );
});

test("every thrown value becomes an exception that Python can catch, with a bounded text", async () => {
  const withProperty = (name: string, property: PropertyDescriptor): Error =>
    Object.defineProperty(new Error("own text"), name, property);
  const fails = {
    get(): never {
      throw new Error("do not look");
    },
  };
  const noText = "the function threw a value that has no text";
  const cases: readonly (readonly [unknown, string, string])[] = [
    [Object.create(null), "RuntimeError", "{}"],
    [Proxy.revocable({}, {}).proxy, "RuntimeError", "{}"],
    [new Proxy(new Error("x"), { getPrototypeOf: fails.get }), "RuntimeError", noText],
    [{ toString: fails.get }, "RuntimeError", "{}"],
    [Symbol("s"), "RuntimeError", "Symbol(s)"],
    [undefined, "RuntimeError", "undefined"],
    [10n, "RuntimeError", "10"],
    [withProperty("message", { value: { no: "text" } }), "RuntimeError", ""],
    [withProperty("message", fails), "RuntimeError", ""],
    [withProperty("name", fails), "RuntimeError", "own text"],
    [withProperty("code", fails), "RuntimeError", "own text"],
    [withProperty("syscall", { value: 5 }), "RuntimeError", "own text"],
    [Object.assign(new PythonException("KeyError", "k"), { type: { no: "text" } }), "RuntimeError", "k"],
    [new PythonException("Fancy", ""), "RuntimeError", "Fancy"],
    [new Error("e".repeat(5_000_000)), "RuntimeError", `${"e".repeat(2_000)}…`],
    [new PythonException("F".repeat(100_000), "m"), "RuntimeError", `${"F".repeat(200)}: m`],
  ];
  const session = python.createSession();
  const code = "try:\n    f()\nexcept Exception as e:\n    r = [type(e).__name__, str(e)]\nr";
  for (const [thrown, ...expected] of cases) {
    const { result } = await session.run(code, {
      functions: {
        f: () => {
          throw thrown;
        },
      },
    });
    expect(result).toEqual(expected);
  }
});

test("a returned value that Python cannot accept is an exception in Python", async () => {
  const session = python.createSession();
  const thrown = async (value: unknown): Promise<unknown> => {
    const { result } = await session.run(
      "try:\n    f()\n    r = 'none'\nexcept Exception as e:\n    r = str(e)\nr",
      {
        functions: { f: () => value },
      },
    );
    return result;
  };
  const failing = {
    get part(): never {
      throw new Error("no");
    },
  };
  const cyclic: { self?: unknown } = {};
  cyclic.self = cyclic;
  expect(await thrown([failing])).toBe("Python cannot accept the result of f(): reading it failed.");
  expect(await thrown(new Map([[{ a: 1 }, 2]]))).toBe(
    "Python cannot accept the result of f() (a key): it cannot be hashed.",
  );
  expect(await thrown(cyclic)).toContain("nested deeper than 100 levels");
  expect(await thrown(new Array(4_000_000_000))).toContain("has more than 1,000,000 parts");
  expect(await thrown(Object.assign(Object.create(null), { a: 1 }))).toBe("none");
});

test("keywords arrive under any name, or are refused", async () => {
  const session = python.createSession();
  const functions = { see: (kwargs: object) => Object.entries(kwargs).flat() };
  const { result } = await session.run("see(**{'__proto__': [1], 'constructor': 2, 'a b': 3})", {
    functions,
  });
  expect(result).toEqual(["__proto__", [1], "constructor", 2, "a b", 3]);
  await expect(session.run("see(**{'a\\0b': 1})", { functions })).rejects.toThrow(
    "keywords must be strings without NUL",
  );
  await expect(session.run("see(**{'k' * 5000000: 1})", { functions })).rejects.toThrow(
    "The call of see() holds more than 4,000,000 characters.",
  );
});
