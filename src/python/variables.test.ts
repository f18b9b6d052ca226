import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { campaignTest, rounds } from "../testing/campaign.suite.ts";
import { testFolder } from "../testing/test-folder.ts";
import { createPython } from "./create-python.ts";

const python = createPython();
afterAll(() => python.close());

test("variables, functions and imports of one run exist in the next", async () => {
  const session = python.createSession();
  await session.run(`
import math, json as j
from datetime import date, timedelta
rate = 0.5
rows = [{'n': i, 'half': i * rate} for i in range(3)]
def total(key='half', *, digits=2):
    """Sums
    a column."""
    return round(sum([row[key] for row in rows]), digits)
square = lambda x: x * x  # of a number
async def slow(): return 1
`);
  const { result } = await session.run(`
rows.append({'n': 3, 'half': math.floor(1.9)})
[total(), square(3), j.dumps(rows[-1]), str(date(2026, 1, 2) + timedelta(days=1)), await slow()]
`);
  expect(result).toEqual([2.5, 9, '{"n": 3, "half": 1}', "2026-01-03", 1]);
  await session.run("rate = 2\ndef total(): return 'new'");
  expect((await session.run("[rate, total(), len(rows)]")).result).toEqual([2, "new", 4]);
});

test("shared values stay shared, cycles stay cycles, and types stay types", async () => {
  const session = python.createSession();
  await session.run(`
from pathlib import Path
import re, datetime
a = [1]
b = {'a': a, 'again': a, 'set': {1, 2}, 'frozen': frozenset([(1, a is None)]), 't': (a, (2.0, -0.0))}
a.append(b)
cyclic_tuple = ([],)
cyclic_tuple[0].append(cyclic_tuple)
other = a
big, real, yes, none = 10 ** 30, 1e300, True, None
raw, path, pattern = b'\\x00\\xff', Path('x/y'), re.compile('A+', re.I)
naive = datetime.datetime(2026, 1, 2, 3, 4, 5, 6)
zoned = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2), 'X'))
`);
  const { result } = await session.run(`
a.append('end')
[
    b['a'] is a, b['again'] is other, a[1] is b, b['t'][0] is a, cyclic_tuple[0][0] is cyclic_tuple, len(other),
    repr(b['t'][1]), repr(b['frozen']), repr(b['set']), big == 10 ** 30, repr(real == 1e300), yes is True, none is None,
    raw == b'\\x00\\xff', str(path), pattern.match('aAa') is not None, repr(naive), repr(zoned),
]
`);
  expect(result).toEqual([
    true,
    true,
    true,
    true,
    true,
    3,
    "(2.0, -0.0)",
    "frozenset({(1, False)})",
    "{1, 2}",
    true,
    "True",
    true,
    true,
    true,
    "x/y",
    true,
    "datetime.datetime(2026, 1, 2, 3, 4, 5, 6)",
    "datetime.datetime(2026, 1, 2, 0, 0, tzinfo=datetime.timezone(datetime.timedelta(seconds=7200), 'X'))",
  ]);
});

test("a rebound name of an import is not restored as the import", async () => {
  const session = python.createSession();
  const first = await session.run(
    "import math as a, math as b, json\na = range(3)\ntry:\n    import re as c\nexcept ImportError:\n    c = None",
  );
  expect(first.forgotten.map(({ name }) => name)).toEqual(["a"]);
  expect(
    (await session.run("b = ...\n[json.dumps(1), c.escape('.')]")).forgotten.map(({ name }) => name),
  ).toEqual(["b"]);
  for (const name of ["a", "b"]) {
    await expect(session.run(name)).rejects.toMatchObject({ exception: { type: "NameError" } });
  }
  expect((await session.run("json.dumps(c.escape('.'))")).result).toBe('"\\\\."');
});

test("dates, times, timedeltas and time zones keep their types, also inside containers", async () => {
  const session = python.createSession();
  session.registerDataclass({ name: "Visit", fields: ["day"] });
  const { forgotten } = await session.run(`
import datetime
from datetime import date, timedelta, timezone
day, span, zone = date(2026, 1, 2), timedelta(days=1, seconds=2), timezone.utc
moment, other = datetime.datetime(2026, 1, 2, 3), timezone(timedelta(hours=-3), 'X')
days = [day, {day: span}, (zone, {day}), day]
visit = Visit({'on': [day, span]})
`);
  expect(forgotten).toEqual([]);
  const { result } = await session.run(`
[
    isinstance(day, date), day.year, span + span == timedelta(days=2, seconds=4), str(zone), moment.hour, repr(other),
    days[0] is days[3], days[1][day] == span, days[2] == (zone, {day}), visit.day['on'][0] < date(2027, 1, 1),
]
`);
  const otherZone = "datetime.timezone(datetime.timedelta(days=-1, seconds=75600), 'X')";
  expect(result).toEqual([true, 2026, true, "UTC", 3, otherZone, true, true, true, true]);
});

test("fields of a dataclass keep their types, or the dataclass is reported", async () => {
  const session = python.createSession();
  session.registerDataclass({ name: "Box", fields: ["x"] });
  const { forgotten } = await session.run(`
from pathlib import Path
def f(): return 1
data, empty = Box([1, {'a': (2.5, None)}, Box(b'')]), Box(0)
span, dots, error, path, call, around = Box(0), Box(0), Box(0), [Box(0)], Box(0), Box(0)
span.x = [range(3)]
dots.x = ...
error.x = ValueError('x')
path[0].x = {'at': Path('a')}
call.x = f
around.x = [around]
numbers, nothing, step = range(3), ..., [range(2)]
`);
  expect(Object.fromEntries(forgotten.map(({ name, reason }) => [name, reason]))).toEqual({
    span: "a dataclass that holds a value of the type range cannot be kept",
    dots: "a dataclass that holds a value of the type ellipsis cannot be kept",
    error: "a dataclass that holds a value of the type ValueError cannot be kept",
    path: "a dataclass that holds a value of the type PosixPath cannot be kept",
    call: "a dataclass that holds a value of the type function cannot be kept",
    around: "a dataclass that holds itself cannot be kept",
    numbers: "a value of the type range cannot be kept",
    nothing: "a value of the type ellipsis cannot be kept",
    step: "a value of the type range cannot be kept",
  });
  expect((await session.run("repr(data)")).result).toBe("Box(x=[1, {'a': (2.5, None)}, Box(x=b'')])");
});

test("functions in variables and containers stay the same functions", async () => {
  const session = python.createSession();
  await session.run(`
count = 0
def step(by=1):
    global count
    count += by
    return count
alias = step
table = {'step': step, 'all': [step, step]}
`);
  const { result } = await session.run("[table['step'] is step, alias is step, table['all'][1](5), count]");
  expect(result).toEqual([true, true, 5, 5]);
  expect((await session.run("count")).result).toBe(5);
});

test("a variable that cannot be saved is reported with the reason, and no other is lost", async () => {
  const session = python.createSession();
  const { forgotten } = await session.run(`
def maker():
    n = 0
    def inner(): return n
    return inner
made = maker()
def plain(): return 1
decorated = maker()
def late(x=made): return x
listed = [lambda: 1]
error = ValueError('x')
async def f(): return 1
waiting = f()
fine = [1]
T = int
for i in range(2): pass
`);
  expect(
    Object.fromEntries(forgotten.map(({ name, reason }) => [name, reason.split(" ").slice(0, 4).join(" ")])),
  ).toEqual({
    made: "only a function made",
    decorated: "only a function made",
    late: "only a function made",
    listed: "only a function made",
    error: "a value of the",
    waiting: "a value of the",
    T: "a value of the",
  });
  expect((await session.run("[fine, i, maker()()]")).result).toEqual([[1], 1, 0]);
  await expect(session.run("made")).rejects.toMatchObject({ exception: { type: "NameError" } });
});

test("a failed run changes no variables", async () => {
  const session = python.createSession();
  await session.run("x = [1]\ndef f(): return 'old'");
  await expect(session.run("x.append(2)\ny = 1\ndef f(): return 'new'\n1 / 0")).rejects.toThrow(
    "ZeroDivisionError",
  );
  expect((await session.run("[x, f()]")).result).toEqual([[1], "old"]);
  await expect(session.run("y")).rejects.toMatchObject({ exception: { type: "NameError" } });
});

test("inputs are variables, and replace only those of the same name", async () => {
  const session = python.createSession();
  await session.run("shared = [1]\nx = shared\ny = shared");
  expect((await session.run("1", { inputs: { x: [9] } })).result).toBe(1);
  expect((await session.run("[x, y, shared is y]")).result).toEqual([[9], [1], true]);
});

test("an input replaces a function or an import, which values can still refer to", async () => {
  const session = python.createSession();
  await session.run("import math\ndef f(): return 'function'\nlisted = [f]");
  const code = "[f, math, listed[0]()]";
  expect((await session.run(code, { inputs: { f: 1, math: 2 } })).result).toEqual([1, 2, "function"]);
  expect((await session.run("[f, math]")).result).toEqual([1, 2]);
});

test("names are compared as Python compares them", async () => {
  const session = python.createSession();
  await session.run("\u00b5 = 1\ncafé = 2\n变量 = 3");
  expect((await session.run("[\u03bc, café, 变量]")).result).toEqual([1, 2, 3]);
});

test("variables that a run does not name cost it nothing", async () => {
  const session = python.createSession();
  const count = rounds(10_000, 50_000);
  await session.run(`rows = [{'a': i, 'b': str(i), 'c': [i, i]} for i in range(${count})]\nsmall = 1`, {
    resourceLimits: { maxDurationSecs: 20 },
  });
  const { result } = await session.run("small + 1", { resourceLimits: { maxAllocations: 2_000 } });
  expect(result).toBe(2);
  expect((await session.run("len(rows)", { resourceLimits: { maxDurationSecs: 20 } })).result).toBe(count);
});

test("a variable that is too large is reported, and the others stay", async () => {
  const session = python.createSession();
  const { forgotten } = await session.run("large = 'x' * 17000000\nsmall = 1");
  expect(forgotten).toEqual([{ name: "large", reason: "it takes more than 16 MiB" }]);
  expect((await session.run("small")).result).toBe(1);
});

campaignTest("a session fills up to its limit", async () => {
  const session = python.createSession();
  const names = ["a", "b", "c", "d", "e"];
  const forgotten: string[] = [];
  for (const name of names) {
    const run = await session.run(`${name} = 'x' * 15000000`);
    forgotten.push(...run.forgotten.map((item) => item.name));
  }
  expect(forgotten).toEqual(["e"]);
  await session.reset();
  await expect(session.run("a")).rejects.toMatchObject({ exception: { type: "NameError" } });
});

test("another process can load a dump and continue", async () => {
  const session = python.createSession();
  await session.run(
    "import math\nitems = [1, {'k': (2.0, None)}]\nsame = items\ndef area(r): return math.pi * r * r",
  );
  const folder = testFolder(onTestFinished);
  const file = join(folder, "state.bin");
  await writeFile(file, await session.dump());
  const program = join(folder, "load.mjs");
  const source = new URL("./create-python.ts", import.meta.url).href;
  await writeFile(
    program,
    `import { readFileSync, writeFileSync } from "node:fs";
       import { createPython } from ${JSON.stringify(source)};
       const python = createPython();
       const session = python.createSession();
       await session.load(readFileSync(process.argv[2]));
       const { result } = await session.run("same.append(round(area(2), 2))\\nitems", { returns: "repr" });
       writeFileSync(process.argv[2], await session.dump());
       console.log(result);
       await python.close();`,
  );
  const { stdout } = await promisify(execFile)(process.execPath, [program, file]);
  expect(stdout.trim()).toBe("[1, {'k': (2.0, None)}, 12.57]");
  await session.load(await readFile(file));
  expect((await session.run("[len(items), same is items]")).result).toEqual([3, true]);
});

test("bytes that are not a dump, damaged or of another version are refused and change nothing", async () => {
  const session = python.createSession();
  await session.run("x = [1, 2, 3]");
  const dump = await session.dump();
  const with_ = (at: number, byte: number): Uint8Array => {
    const copy = new Uint8Array(dump);
    copy[at] = byte;
    return copy;
  };
  const cases: readonly (readonly [Uint8Array, string])[] = [
    [new Uint8Array(), "These bytes are not a dump of Python variables."],
    [new TextEncoder().encode("hello".repeat(100)), "These bytes are not a dump of Python variables."],
    [with_(14, 57), "This dump has version 9; this kit reads version 2."],
    [
      new TextEncoder().encode("KIT-PYTHON-STATE\0\u0001"),
      "This dump has version 1; this kit reads version 2.",
    ],
    [with_(dump.length - 3, 0), "This dump of Python variables is damaged."],
    [with_(110, 0), "This dump of Python variables is damaged."],
    [dump.subarray(0, dump.length - 1), "This dump of Python variables is damaged."],
    [new Uint8Array([...dump, 1]), "This dump of Python variables is damaged."],
  ];
  for (const [bytes, message] of cases) {
    await expect(session.load(bytes)).rejects.toMatchObject({ code: "invalid_request", message });
  }
  expect((await session.run("x")).result).toEqual([1, 2, 3]);
});
