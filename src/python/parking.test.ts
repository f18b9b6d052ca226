import { afterAll, expect, test } from "vitest";
import { createPython } from "./create-python.ts";

/** One process: several programs can wait for the host at once only where none of them holds it. */
const python = createPython({ maxRunning: 1, maxProcesses: 1 });
afterAll(() => python.close());

/** A function of the host that answers when `count` programs wait for it. */
function meeting(count: number): (value?: unknown) => Promise<unknown> {
  let waiting = 0;
  const all = Promise.withResolvers<void>();
  return async (value) => {
    waiting += 1;
    if (waiting === count) all.resolve();
    await all.promise;
    return value;
  };
}

/** Runs code whose calls of `meet` wait until another program has come to call the host, too. */
async function runParked(code: string, session = python.createSession()): Promise<unknown> {
  const meet = meeting(2);
  const other = python.createSession().run("meet()", { functions: { meet } });
  const { result } = await session.run(code, { functions: { meet } });
  await other;
  return result;
}

test("sixty programs wait for the host at once, with one process for all of them", async () => {
  const meet = meeting(60);
  const runs = Array.from({ length: 60 }, async (_, index) => {
    const { result, stdout } = await python
      .createSession()
      .run(`print('before', ${index})\nx = meet(${index})\nprint('after')\nx`, { functions: { meet } });
    return [result, stdout];
  });
  expect(await Promise.all(runs)).toEqual(runs.map((_, index) => [index, `before ${index}\nafter\n`]));
});

test("a parked program continues at the same point with all its values", async () => {
  const session = python.createSession();
  session.registerDataclass({
    name: "Point",
    fields: ["x", "y"],
    methods: { sum: (self) => Number(self.x) + Number(self.y) },
  });
  await session.run(
    "import math\nold = {'a': [1]}\ndef area(r): return math.floor(math.pi * r)\nlast = Point(1, 1)",
  );
  const code = `
import re, datetime
def outer(n):
    held = [n]
    def inner():
        held.append(meet(n))
        return held
    return inner()
same = old['a']
p = Point(3, 4)
values = [re.compile('a+'), datetime.date(2026, 1, 2), 10 ** 30, {1, 2}, (1, 2.5)]
try:
    found = [outer(i) for i in range(2)]
    1 / 0
except ZeroDivisionError:
    same.append(2)
[found, old, values[0].match('aa') is not None, str(values[1]), values[2], values[3], values[4], p.sum(), p == Point(3, 4),
 last == Point(1, 1), area(2)]
`;
  expect(await runParked(code, session)).toEqual([
    [
      [0, 0],
      [1, 1],
    ],
    new Map([["a", [1, 2]]]),
    true,
    "2026-01-02",
    10n ** 30n,
    new Set([1, 2]),
    [1, 2.5],
    7,
    true,
    true,
    6,
  ]);
  expect((await session.run("[old, area(1), values[1].year, values[0].pattern]")).result).toEqual([
    new Map([["a", [1, 2]]]),
    3,
    2026,
    "a+",
  ]);
});

test("an exception after the wait has the lines of the program", async () => {
  await expect(runParked("def f(n):\n    return n / 0\nx = meet(1)\nf(x)")).rejects.toMatchObject({
    exception: { type: "ZeroDivisionError" },
    traceback: expect.stringContaining('File "main.py", line 2, in f\n    return n / 0'),
  });
});

test("limits apply across the wait", async () => {
  const run = async (code: string, resourceLimits: object): Promise<unknown> => {
    const meet = meeting(2);
    const other = python.createSession().run("meet()", { functions: { meet } });
    try {
      return await python.createSession().run(code, { functions: { meet }, resourceLimits });
    } finally {
      await other;
    }
  };
  await expect(
    run("a = ['x' * 1000 for i in range(90)]\nmeet()\na + ['y' * 1000 for i in range(90)]", {
      maxMemory: 150_000,
    }),
  ).rejects.toMatchObject({
    exception: { type: "MemoryError" },
  });
  await expect(run("meet()\nwhile True: pass", { maxDurationSecs: 0.2 })).rejects.toMatchObject({
    exception: { type: "TimeoutError" },
  });
});

test("output before and after the wait has one common limit", async () => {
  const meet = meeting(2);
  const other = python.createSession().run("meet()", { functions: { meet } });
  const code = "print('x' * 60000)\nmeet()\nprint('y' * 60000)";
  const { stdout, dropped_chars } = await python.createSession().run(code, { functions: { meet } });
  await other;
  expect([stdout.length, dropped_chars]).toEqual([100_000, 20_002]);
});

test("the signal and close end a waiting program, and the next one runs", async () => {
  const closing = createPython({ maxRunning: 1, maxProcesses: 1 });
  const forever = { wait: () => new Promise(() => undefined) };
  const abort = new AbortController();
  const aborted = closing.createSession().run("wait()", { functions: forever, signal: abort.signal });
  const closed = closing.createSession().run("wait()", { functions: forever });
  expect((await closing.createSession().run("1 + 1")).result).toBe(2);
  abort.abort(new Error("enough"));
  await expect(aborted).rejects.toThrow("enough");
  expect((await closing.createSession().run("2 + 2")).result).toBe(4);
  const over = expect(closed).rejects.toMatchObject({ code: "unavailable" });
  await closing.close();
  await over;
});

test("a program that is too large to be parked keeps its process, and others get another one", async () => {
  const roomy = createPython({ maxRunning: 1, maxProcesses: 2 });
  const meet = meeting(3);
  const functions = { meet };
  const large = roomy.createSession().run("x = 'x' * 3000000\nmeet(len(x))", { functions });
  const small = [1, 2].map((n) => roomy.createSession().run(`meet(${n})`, { functions }));
  const results = (await Promise.all([large, ...small])).map(({ result }) => result);
  expect(results).toEqual([3_000_000, 1, 2]);
  await roomy.close();
});
