import { setTimeout } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { isCampaign } from "../testing/campaign.suite.ts";
import { createPython } from "./create-python.ts";

const python = createPython();
afterAll(() => python.close());

/** Native operations that look at no limit take hours: they end in time only when kit ends them. */
const hours = "(10 ** 40000000) // (10 ** 20000000 + 1)";

const bombs: Readonly<
  Record<string, { readonly code: string; readonly type: RegExp; readonly memory?: number }>
> = {
  "an infinite loop": { code: "while True: pass", type: /TimeoutError/ },
  "a loop that catches everything": {
    code: "while True:\n  try:\n    while True: pass\n  except BaseException:\n    pass",
    type: /TimeoutError/,
  },
  "a native operation that passes the limit": {
    code: `x = ${hours}`,
    type: /TimeoutError/,
    memory: 1_000_000_000,
  },
  "a flood of output": { code: "while True: print('x' * 1000)", type: /TimeoutError|MemoryError/ },
  "a list without end": { code: "a = []\nwhile True: a.append('x' * 100000)", type: /MemoryError/ },
  "a huge string": { code: "'x' * 10 ** 10", type: /MemoryError/ },
  "a huge list": { code: "[0] * 10 ** 10", type: /MemoryError/ },
  "a huge number": { code: "1 << 10 ** 11", type: /MemoryError/ },
  "a doubled string": { code: "s = 'x'\nwhile True: s = s + s", type: /MemoryError/ },
  "a native operation that takes memory it does not count": {
    code: "n = 'y' * 100000\n'x'.join([n] * 30000)",
    type: /MemoryError|TimeoutError/,
    memory: 16_000_000,
  },
  "a result that shares itself": {
    code: "a = [1]\nfor i in range(60): a = [a, a]\na",
    type: /MemoryError|TimeoutError/,
  },
  "a text of what shares itself": {
    code: "import json\na = [1]\nfor i in range(60): a = [a, a]\nlen(json.dumps(a))",
    type: /MemoryError|TimeoutError/,
  },
  "a recursion without end": { code: "def f(n): return f(n + 1)\nf(0)", type: /RecursionError/ },
  "deep brackets": { code: `${"[".repeat(50_000)}${"]".repeat(50_000)}`, type: /SyntaxError|RecursionError/ },
  "a deep chain of operators": { code: `1${"+1".repeat(50_000)}`, type: /SyntaxError|RecursionError/ },
  "a regular expression that backtracks": {
    code: "import re\nre.match(r'(a|a)*b\\1', 'a' * 60)",
    type: /PatternError|TimeoutError/,
  },
};

/** One for each way a program ends; a campaign tries them all. */
const quick = [
  "an infinite loop",
  "a native operation that passes the limit",
  "a huge string",
  "deep brackets",
];

for (const [name, { code, type, memory = 64_000_000 }] of Object.entries(bombs)) {
  if (!isCampaign && !quick.includes(name)) continue;
  test(`${name} ends within its limits, and what comes after it runs`, async () => {
    const session = python.createSession();
    await session.run("before = [1, 2]");
    // Where memory or depth is to end it, a slow machine must not run out of time before.
    const maxDurationSecs = type.test("TimeoutError") ? 0.5 : 60;
    const resourceLimits = { maxDurationSecs, maxMemory: memory };
    await expect(session.run(code, { resourceLimits })).rejects.toMatchObject({
      code: "python_error",
      exception: { type: expect.stringMatching(type) },
    });
    expect((await session.run("before")).result).toEqual([1, 2]);
  });
}

test("the host stays responsive while programs exceed every limit", async () => {
  const hard = [
    "an infinite loop",
    "a native operation that passes the limit",
    "a flood of output",
    "a huge string",
  ];
  let over = false;
  const runs = hard.map(async (name) =>
    python.createSession().run(bombs[name]?.code ?? "", { resourceLimits: { maxDurationSecs: 0.5 } }),
  );
  const ends = Promise.allSettled(runs).finally(() => {
    over = true;
  });
  // A program on the host's own thread would hold it from its beginning to its end: one turn for each.
  let turns = 0;
  for (; !over; turns += 1) await setTimeout(1);
  expect((await ends).map(({ status }) => status)).toEqual(hard.map(() => "rejected"));
  expect(turns).toBeGreaterThan(20);
});

test("fifty sessions at once are all served, with endless loops among them", async () => {
  const runs = Array.from({ length: 50 }, async (_, index) => {
    const session = python.createSession();
    const run =
      index % 10 === 0
        ? session.run("while True: pass", { resourceLimits: { maxDurationSecs: 0.2 } })
        : session.run(`sum(range(${index}))`);
    return run.then(
      ({ result }) => result,
      (error: { readonly exception: { readonly type: string } }) => error.exception.type,
    );
  });
  const expected = runs.map((_, index) => (index % 10 === 0 ? "TimeoutError" : (index * (index - 1)) / 2));
  expect(await Promise.all(runs)).toEqual(expected);
});

test("an aborted run ends at once with the reason, and the variables stay unchanged", async () => {
  const session = python.createSession();
  await session.run("kept = 1");
  for (const code of ["kept = 2\nwhile True: pass", `kept = 2\n${hours}`]) {
    const reason = new Error("No longer wanted.");
    const controller = new AbortController();
    const run = session.run(code, { signal: controller.signal, resourceLimits: { maxDurationSecs: 3_600 } });
    await setTimeout(200);
    controller.abort(reason);
    await expect(run).rejects.toBe(reason);
  }
  const waiting = session.run("1", { signal: AbortSignal.abort("gone") });
  await expect(waiting).rejects.toBe("gone");
  expect((await session.run("kept")).result).toBe(1);
});

test("an aborted run leaves the queue", async () => {
  const narrow = createPython({ maxRunning: 1 });
  const long = narrow.createSession().run("while True: pass", { resourceLimits: { maxDurationSecs: 1 } });
  const controller = new AbortController();
  const waiting = narrow.createSession().run("1", { signal: controller.signal });
  const next = narrow.createSession().run("2");
  controller.abort("enough");
  await expect(waiting).rejects.toBe("enough");
  await expect(long).rejects.toMatchObject({ exception: { type: "TimeoutError" } });
  expect((await next).result).toBe(2);
  await narrow.close();
});
