import { afterAll, expect, test } from "vitest";
import { createPython } from "./create-python.ts";
import { PythonError } from "./python-error.ts";

const python = createPython();
afterAll(() => python.close());

const failureOf = async (run: Promise<unknown>): Promise<PythonError> => {
  const error = await run.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof PythonError)) throw new Error("It did not fail in Python.", { cause: error });
  return error;
};

test("the result is the value of the last expression", async () => {
  const session = python.createSession();
  const cases: readonly (readonly [string, unknown])[] = [
    ["1 + 1", 2],
    ["x = 1", null],
    ["", null],
    ["x = 1; x + 1  # why", 2],
    ["x = 1; x + 1;", 2],
    ["(\n  1 +\n  2\n)\n\n# a remark\n", 3],
    ["'''a\nb'''", "a\nb"],
    ["1, 2", [1, 2]],
    ["if True:\n    5", null],
    ["def f():\n    return 7\nf()", 7],
    ["a = 1\r\nb = 2\r\na + b\r\n", 3],
    ["import asyncio\nasync def f():\n    return 1\nawait f()", 1],
    ["lambda: 0", "<function '<lambda>' at"],
    ["not False", true],
    ["[i for i in range(3)]", [0, 1, 2]],
    ["\\\n5", 5],
    ["\uFEFFx = 1\nx", 1],
    ["s = '''a\nb'''; s", "a\nb"],
    ["def f(): return '''\n''' # why\nf()", "\n"],
    ["f = lambda: '''a\nb'''\nf()", "a\nb"],
    ["x = [\n  1,\n]; x", [1]],
    ["if True: x = 1; y = 2\n(x,\n y)", [1, 2]],
  ];
  for (const [code, expected] of cases) {
    const { result } = await session.run(code);
    if (typeof expected === "string" && expected.startsWith("<")) expect(result).toContain(expected);
    else expect(result, code).toEqual(expected);
  }
  expect((await session.run("[1.0, (2,), 'é']", { returns: "repr" })).result).toBe("[1.0, (2,), 'é']");
});

test("printed output is collected up to a limit, and then only counted", async () => {
  const session = python.createSession();
  const { stdout } = await session.run("print('a', 'b', sep='-')\nprint('c', end='')");
  expect(stdout).toBe("a-b\nc");
  const flood = await session.run("for _ in range(3000): print('x' * 99)");
  expect(flood.stdout).toHaveLength(100_000);
  expect(flood.dropped_chars).toBe(200_000);
  const failed = await failureOf(session.run("print('so far')\n1 / 0"));
  expect(failed.stdout).toBe("so far\n");
});

test("an exception carries its type, its message and a traceback of the user's code", async () => {
  const session = python.createSession();
  await session.run("def divide(a, b):\n    '''Two\n    lines.'''\n    return a / b");
  const error = await failureOf(
    session.run("x = 1\n\ndef go():\n    return divide(x, 0)\n\ny = 2; go()  # here"),
  );
  expect(error).toMatchObject({
    code: "python_error",
    message: "ZeroDivisionError: division by zero",
    exception: { type: "ZeroDivisionError", message: "division by zero" },
  });
  expect(error.traceback).toBe(
    [
      "Traceback (most recent call last):",
      '  File "main.py", line 6, in <module>',
      "    y = 2; go()  # here",
      "           ~~~~",
      '  File "main.py", line 4, in go',
      "    return divide(x, 0)",
      "           ~~~~~~~~~~~~",
      '  File "earlier.py", line 4, in divide',
      "    return a / b",
      "           ~~~~~",
      "ZeroDivisionError: division by zero",
    ].join("\n"),
  );
});

test("the error of code that does not compile has the line", async () => {
  const session = python.createSession();
  const syntax = await failureOf(session.run("a = 1\nif a\n  b"));
  expect(syntax.exception).toEqual({ type: "SyntaxError", message: "Expected `:`, found newline" });
  expect(syntax.traceback).toContain('File "main.py", line 2');
  const unknown = await failureOf(session.run("a = 1\nclass A: pass"));
  expect(unknown.exception.type).toBe("NotImplementedError");
  expect(unknown.traceback).toContain("class A: pass");
});

test("code that Monty would get wrong is refused with its line before it runs", async () => {
  const session = python.createSession();
  const cases: readonly (readonly [string, string, string])[] = [
    [
      "def loud(f): return f\n@loud\ndef f(): return 1",
      "line 2\n    @loud\n    ~~~~~\n",
      "decorators are not supported",
    ],
    ["def outer():\n    @outer\n    async def f(): pass", "line 2\n    @outer\n", "decorators"],
    [
      "x = 1\nif x and set([1]) <= {1}: pass",
      "    if x and set([1]) <= {1}: pass\n             ~~~~~~~~~~~~~~~\n",
      "'<=' of lists and sets",
    ],
    ["[1, 2] < [i for i in (1, 3)]", "line 1", "compare tuple(a) < tuple(b)"],
    ["f = lambda a: 1 < a < sorted(a)", "line 1", "'<' of lists and sets"],
    ["import re\nre.split(r'[(]\\((,)', 'a')", "line 2", "re.split() drops the text that groups match"],
    ["import re\nre.split('(?P<sign>,)', 'a', maxsplit=1)", "line 2", "re.split()"],
  ];
  for (const [code, place, message] of cases) {
    const error = await failureOf(session.run(`print('began')\n${code}`));
    expect(error.exception.type).toBe("NotImplementedError");
    expect(error.message).toContain(message);
    expect(error.traceback).toContain(place.replace(/line (\d)/, (_, line) => `line ${Number(line) + 1}`));
    expect(error.stdout).toBe("");
  }
  const fine =
    "import re\n[re.split(r'(?:,|[(;])\\(?', 'a,b'), 1 < len([1, 2]), [1] == [1], 'a,(b'.split('(')]";
  expect((await session.run(fine)).result).toEqual([["a", "b"], true, true, ["a,", "b"]]);
});

test("SystemExit keeps its number and can be caught", async () => {
  const session = python.createSession();
  const exit = await failureOf(session.run("def stop(n):\n    raise SystemExit(n + 1)\nstop(1)"));
  expect(exit.exception).toEqual({ type: "SystemExit", message: "2" });
  expect(exit.traceback).toContain("    raise SystemExit(n + 1)\n");
  expect(exit.hint).toContain("let the code run to its end");
  const caught =
    "try:\n    raise SystemExit(3)\nexcept SystemExit as e:\n    r = str(e)\n[r, 'SystemExit(1)']";
  expect((await session.run(caught)).result).toEqual(["3", "SystemExit(1)"]);
  for (const code of ["raise SystemExit", "raise SystemExit('why')", "raise KeyboardInterrupt"]) {
    expect((await failureOf(session.run(code))).message).toMatch(
      /^(SystemExit|SystemExit: why|KeyboardInterrupt)$/,
    );
  }
});

test("errors of the code are not reported as internal errors of Monty", async () => {
  const session = python.createSession();
  for (const code of [
    "raise ValueError(42)",
    "KeyError('a', 1)",
    "e = Exception([1])",
    "raise SystemExit(1, 2)",
  ]) {
    const error = await failureOf(session.run(code));
    expect(error.message).toBe("TypeError: an exception takes one text at most");
    expect(error.traceback).toContain("Hint: Write ValueError(str(value))");
  }
});

test("functions can use names that are defined below them or in the main program", async () => {
  const session = python.createSession();
  const code = `
def main():
    global calls
    calls += 1
    return [even(10), [n * factor for n in range(3)], (lambda: factor)()]
def even(n): return True if n == 0 else odd(n - 1)
def odd(n): return False if n == 0 else even(n - 1)
factor = 2
calls = 0
if __name__ == '__main__':
    answer = main()
answer
`;
  expect((await session.run(code)).result).toEqual([true, [0, 2, 4], 2]);
  expect((await session.run("main(), calls")).result).toEqual([[true, [0, 2, 4], 2], 2]);
  await expect(session.run("def f(): return nowhere\nf()")).rejects.toThrow(
    "NameError: name 'nowhere' is not defined",
  );
});

test("a deep stack is shown from both ends, and its exception can be caught", async () => {
  const session = python.createSession();
  const deep = await failureOf(session.run("def f(n): return f(n + 1)\nf(0)"));
  expect(deep.exception.type).toBe("RecursionError");
  expect(deep.traceback).toContain("more calls …]");
  expect(deep.traceback.split("\n").length).toBeLessThan(80);
  const caught = "def f(n): return f(n + 1)\ntry:\n    f(0)\nexcept RecursionError:\n    r = 'caught'\nr";
  expect((await session.run(caught)).result).toBe("caught");
});

test("names reserved for kit are refused", async () => {
  const session = python.createSession();
  for (const code of ["__kit_finish__", "def f(): return __kit_table__", "__kit_x = 1"]) {
    await expect(session.run(code)).rejects.toMatchObject({ code: "invalid_request" });
  }
  expect((await session.run("'__kit_x'")).result).toBe("__kit_x");
});

test("built-ins that a program rebinds do not affect kit's code", async () => {
  const session = python.createSession();
  const names =
    "type id len list dict set tuple float int bool str bytes repr map zip enumerate range NameError ValueError".split(
      " ",
    );
  await session.run(names.map((name) => `${name} = 1`).join("\n"));
  expect((await session.run(`kept = [1, {2: 2.5}]\n[${names.join(", ")}]`)).result).toEqual(
    names.map(() => 1),
  );
  expect((await session.run("kept")).result).toEqual([1, new Map([[2, 2.5]])]);
});

test("runs of one session are sequential, and runs of several sessions are concurrent", async () => {
  const session = python.createSession();
  await session.run("order = []");
  const runs = Array.from({ length: 20 }, (_, index) => session.run(`order.append(${index})\nlen(order)`));
  expect((await Promise.all(runs)).map(({ result }) => result)).toEqual(runs.map((_, index) => index + 1));
  const others = Array.from({ length: 50 }, async (_, index) => {
    const own = python.createSession();
    await own.run("mine = index * 2", { inputs: { index } });
    return (await own.run("mine")).result;
  });
  expect(await Promise.all(others)).toEqual(others.map((_, index) => index * 2));
});

test("limits are passed on unchanged, and Monty's error for invalid ones is reported", async () => {
  const session = python.createSession();
  const few = await failureOf(
    session.run("[[i] for i in range(10000)]", { resourceLimits: { maxAllocations: 500 } }),
  );
  expect(few.exception.message).toContain("500");
  const shallow = "def f(n): return 0 if n == 0 else f(n - 1)\nf(50)";
  expect((await session.run(shallow)).result).toBe(0);
  const low = await failureOf(session.run(shallow, { resourceLimits: { maxRecursionDepth: 20 } }));
  expect(low.exception.type).toBe("RecursionError");
  expect((await session.run("1", { resourceLimits: { gcInterval: 10, maxMemory: 10_000_000 } })).result).toBe(
    1,
  );
  await expect(session.run("1", { resourceLimits: { maxMemory: -1 } })).rejects.toMatchObject({
    code: "invalid_request",
    message: "Python could not start the code: maxMemory must be non-negative",
  });
});

test("without its package, the error is the command that installs it", async () => {
  const missing = createPython({ backend: "@pydantic/no-such-package" });
  const run = missing.createSession().run("1");
  await expect(run).rejects.toMatchObject({
    code: "unavailable",
    message: "Running Python needs a package that is not installed: npm install @pydantic/monty@0.0.18",
  });
  await missing.close();
});

test("after close no code runs", async () => {
  const closing = createPython();
  const session = closing.createSession();
  await session.run("1");
  const running = session.run("while True: pass");
  setTimeout(() => closing.close(), 100);
  await expect(running).rejects.toMatchObject({ code: "unavailable" });
  await expect(session.run("1")).rejects.toMatchObject({ code: "unavailable" });
});

test("unknown options, limits and functions are refused by name", async () => {
  const session = python.createSession();
  const cases: readonly (readonly [object, string])[] = [
    [{ resourceLimits: { maxMemmory: 5 } }, "`maxMemmory` is not a limit of Python; did you mean maxMemory?"],
    [
      { resourceLimits: { maxdurationsecs: 5 } },
      "`maxdurationsecs` is not a limit of Python; did you mean maxDurationSecs?",
    ],
    [
      { resourceLimits: JSON.parse('{"__proto__": 5}') },
      "`__proto__` is not a limit of Python; there are maxAllocations, maxDurationSecs, maxMemory, maxRecursionDepth, gcInterval.",
    ],
    [{ resourceLimits: { maxMemory: "1" } }, "resourceLimits.maxMemory must be a number."],
    [{ resourceLimits: { maxMemory: null } }, "resourceLimits.maxMemory must be a number."],
    [{ resourceLimits: { maxDurationSecs: Number.NaN } }, "resourceLimits.maxDurationSecs must be a number."],
    [{ resourceLimits: [1] }, "resourceLimits must be an object."],
    [{ input: {} }, "`input` is not an option of a run of Python; did you mean inputs?"],
    [{ inputs: new Map() }, "inputs must be an object, by name."],
    [{ functions: { f: 5 } }, "functions.f must be an object."],
    [
      { functions: { f: { execute: () => 1, timeoutMS: 5 } } },
      "`timeoutMS` is not a field of the function f; did you mean timeoutMs?",
    ],
    [{ functions: { f: { timeoutMs: 5 } } }, "functions.f needs `execute`, a function."],
    [
      { functions: { f: { execute: () => 1, timeoutMs: 0 } } },
      "functions.f.timeoutMs must be a number of milliseconds above 0.",
    ],
    [{ returns: "text" }, '`returns` must be "value" or "repr".'],
  ];
  for (const [options, message] of cases) {
    await expect(session.run("1", options)).rejects.toMatchObject({ code: "invalid_request", message });
  }
  expect(() => createPython({ maxRuning: 1 } as object)).toThrow("did you mean maxRunning?");
  expect(() => createPython({ maxRunning: 0 })).toThrow("maxRunning must be a whole number from 1 up.");
  expect(() => python.createSession({ dataclass: [] } as object)).toThrow("did you mean dataclasses?");
});

test("the texts of every exception are bounded", async () => {
  const session = python.createSession();
  const codes = [
    "raise ValueError('x' * 5000000)",
    "{}['k' * 5000000]",
    "assert False, 'z' * 5000000",
    `def ${"g".repeat(100_000)}(): return 1 / 0\n${"g".repeat(100_000)}()`,
    `${"n".repeat(100_000)}`,
    `'${"a".repeat(100_000)}`,
  ];
  for (const code of codes) {
    const error = await failureOf(session.run(code));
    expect(error.message.length).toBeLessThan(2_100);
    expect(error.exception.message.length).toBeLessThan(2_100);
    expect(error.traceback.length).toBeLessThan(6_000);
  }
  await expect(session.run(`__kit_${"y".repeat(100_000)}`)).rejects.toThrow(/^.{1,2100}$/s);
});
