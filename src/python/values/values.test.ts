import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { rounds } from "../../testing/campaign.suite.ts";
import { createPython } from "../create-python.ts";
import { toPlain } from "./to-plain.ts";

const python = createPython();
afterAll(() => python.close());
const session = python.createSession();

const returned = async (value: unknown): Promise<unknown> =>
  (await session.run("value", { inputs: { value } })).result;

/** The value that Python makes of a value of the host and gives back. */
function expected(value: unknown): unknown {
  if (value === undefined) return null;
  if (typeof value === "number") {
    if (Object.is(value, -0)) return 0;
    return Number.isInteger(value) && Math.abs(value) > 2 ** 53 ? BigInt(value) : value;
  }
  if (typeof value === "bigint") return value >= -(2n ** 53n) && value <= 2n ** 53n ? Number(value) : value;
  if (Array.isArray(value)) return value.map(expected);
  if (value instanceof Map) return new Map([...value].map(([key, part]) => [key, expected(part)]));
  if (value instanceof Set || value instanceof Date || value instanceof Uint8Array) return value;
  if (typeof value === "object" && value !== null) {
    return new Map(Object.entries(value).map(([key, part]) => [key, expected(part)]));
  }
  return value;
}

const text = fc.string({ unit: "grapheme" });
const { value: anyValue } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom<unknown>(null, undefined, true, false, -0, Number.NaN, Number.POSITIVE_INFINITY, 1e300),
    fc.integer(),
    fc.double(),
    fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }),
    text,
    fc.uint8Array({ maxLength: 50 }),
    fc.date({
      min: new Date("0001-01-01T00:00:00Z"),
      max: new Date("9999-12-31T00:00:00Z"),
      noInvalidDate: true,
    }),
    fc.array(tie("value"), { maxLength: 5 }),
    fc.uniqueArray(text, { maxLength: 5 }).map((items) => new Set(items)),
    fc
      .array(fc.tuple(fc.oneof(text, fc.integer()), tie("value")), { maxLength: 5 })
      .map((pairs) => new Map(pairs)),
    fc.dictionary(text, tie("value"), { maxKeys: 5 }),
  ),
}));

test("values are converted as in the table of the documentation", async () => {
  await fc.assert(
    fc.asyncProperty(anyValue, async (value) => {
      expect(await returned(value)).toEqual(expected(value));
    }),
    { numRuns: rounds(40, 150) },
  );
});

test("a saved variable is unchanged, also when loaded from a dump", async () => {
  const other = python.createSession();
  await fc.assert(
    fc.asyncProperty(anyValue, async (value) => {
      const before = await session.run("[kept, repr(kept)]", {
        inputs: { kept: [value, [value], { value }] },
      });
      expect((await session.run("[kept, repr(kept)]")).result).toEqual(before.result);
      await other.load(await session.dump());
      expect((await other.run("[kept, repr(kept)]")).result).toEqual(before.result);
    }),
    { numRuns: rounds(20, 60) },
  );
});

test("Python values without a JavaScript type become the nearest type", async () => {
  const { result } = await session.run(`
import datetime, math
from pathlib import Path
def named(): pass
utc = datetime.timezone.utc
[
    (1, 2.5), frozenset([1]), range(2), Path("a/b"), int, len, ValueError("no"), ...,
    datetime.datetime(2026, 11, 21, 9, 30), datetime.datetime(2026, 11, 21, 9, 30, tzinfo=utc),
    datetime.date(2026, 11, 21), datetime.timedelta(minutes=1), utc, 2 ** 53 + 1, -(2 ** 70), 2.0,
]
`);
  expect(result).toEqual([
    [1, 2.5],
    new Set([1]),
    "range(0, 2)",
    "a/b",
    "<class 'int'>",
    "<built-in function len>",
    'ValueError("no")',
    "Ellipsis",
    "2026-11-21T09:30:00",
    new Date("2026-11-21T09:30:00Z"),
    "2026-11-21",
    60,
    "UTC",
    2n ** 53n + 1n,
    -(2n ** 70n),
    2,
  ]);
});

test("a tuple can be a key of a Map, and become a tuple again", async () => {
  const { result } = await session.run("{(1, 'a'): 2}");
  expect(result).toEqual(new Map([[[1, "a"], 2]]));
  expect((await session.run("back == {(1, 'a'): 2}", { inputs: { back: result } })).result).toBe(true);
});

test("a value of the documented size is accepted, however its characters are encoded", async () => {
  // JSON writes a control character with six, and a number beyond 2^53 with up to 309.
  const cases: readonly (readonly [unknown, number])[] = [
    ["\u0001".repeat(16_000_000), 16_000_000],
    [Array.from({ length: 9_999 }, () => Number.MAX_VALUE), 9_999],
  ];
  // On a busy machine the largest one takes longer than the default limit of 10 s.
  const resourceLimits = { maxDurationSecs: 60 };
  for (const [value, length] of cases) {
    const { result } = await session.run("n = len(value)\nvalue = None\nn", {
      inputs: { value },
      resourceLimits,
    });
    expect(result).toBe(length);
  }
});

test("names of prototypes are plain keys, on both sides", async () => {
  const hostile = JSON.parse('{"__proto__": {"polluted": 1}, "constructor": 2}');
  const result = await returned(hostile);
  expect(result).toEqual(
    new Map<string, unknown>([
      ["__proto__", new Map([["polluted", 1]])],
      ["constructor", 2],
    ]),
  );
  const seen: unknown[] = [];
  await session.run("see(**{'__proto__': 1, 'constructor': 2})", {
    functions: { see: (kwargs: object) => seen.push(Object.keys(kwargs)) },
  });
  expect(seen.flat()).toEqual(["__proto__", "constructor"]);
  const plain = toPlain((await session.run("{'__proto__': {'polluted': 1}, 'a': {1: {2}}}")).result);
  expect(JSON.stringify(plain)).toBe('{"__proto__":{"polluted":1},"a":{"1":[2]}}');
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

test("an argument that Python cannot accept is refused with its path before the code runs", async () => {
  const cycle: unknown[] = [];
  cycle.push(cycle);
  const deep = Array.from({ length: 200 }).reduce<unknown>((inner) => [inner], null);
  class Account {}
  const cases: readonly (readonly [unknown, string])[] = [
    [{ rows: [1, () => 2] }, "Python cannot accept inputs.value.rows[1]: it is a function."],
    [[Symbol("s")], "Python cannot accept inputs.value[0]: it is a symbol."],
    [
      { "a b": new Account() },
      'Python cannot accept inputs.value["a b"]: it is an instance of a class that is not a registered dataclass.',
    ],
    [cycle, "Python cannot accept inputs.value: it is nested deeper than 100 levels."],
    [deep, "Python cannot accept inputs.value: it is nested deeper than 100 levels."],
    ["x".repeat(16_000_001), "Python cannot accept inputs.value: it holds more than 16,000,000 characters."],
    [new Date(Number.NaN), "Python cannot accept inputs.value: it is a date that Python cannot express."],
    [new Array(1_000_001).fill(0), "Python cannot accept inputs.value: it has more than 1,000,000 parts."],
    [new Array(4_000_000_000), "Python cannot accept inputs.value: it has more than 1,000,000 parts."],
    [
      [
        {
          get a() {
            throw new Error("no");
          },
        },
      ],
      "Python cannot accept inputs.value: reading it failed.",
    ],
    [{ a: new Map([[[1, {}], 2]]) }, "Python cannot accept inputs.value.a (a key): it cannot be hashed."],
    [new Set([new Set()]), "Python cannot accept inputs.value (an element): it cannot be hashed."],
  ];
  for (const [value, message] of cases) {
    await expect(returned(value)).rejects.toMatchObject({ code: "invalid_request", message });
  }
  for (const name of ["a b", "class", "__kit_x", "1a", ""]) {
    await expect(session.run("1", { inputs: { [name]: 1 } })).rejects.toThrow(
      /cannot be the name of an input/,
    );
  }
});

test("a result that is too deep or too large is an error, and the session stays usable", async () => {
  const cases: readonly (readonly [string, string])[] = [
    ["a = []\nfor _ in range(300): a = [a]\na", "ValueError: The result is nested deeper than 100 levels."],
    ["['x' * 1000] * 4001", "ValueError: The result holds more than 4,000,000 characters."],
    ["list(range(200001))", "ValueError: The result has more than 200,000 parts."],
  ];
  for (const [code, message] of cases) {
    await expect(session.run(code)).rejects.toMatchObject({ code: "python_error", message });
  }
  expect((await session.run("a = [1]\na.append(a)\na")).result).toEqual([1, "[...]"]);
});
