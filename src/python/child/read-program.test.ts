import fc from "fast-check";
import { expect, test } from "vitest";
import { rounds } from "../../testing/campaign.suite.ts";
import { processorMs } from "../../testing/processor-time.ts";
import { readProgram } from "./read-program.ts";

test("every statement that binds a name is found, and no other", () => {
  const cases: Readonly<Record<string, readonly string[]>> = {
    "a = b = c": ["a", "b"],
    "a, (b, *c), [d] = x": ["a", "b", "c", "d"],
    "a.b = c[d] = 1": [],
    "a: int = 1": ["a"],
    "a: int": [],
    "a += 1": ["a"],
    "for i, (j, k) in x:\n    y = 1\nelse:\n    z = 2": ["i", "j", "k", "y", "z"],
    "with f() as g, h() as i: pass": ["g", "i"],
    "try:\n    a = 1\nexcept E as e:\n    b = 1\nfinally:\n    c = 1": ["e", "a", "b", "c"],
    "if (n := f()) > 1: m = n": ["n", "m"],
    "[(w := x) for x in y]": ["w"],
    "while a: b = 1": ["b"],
    "import a.b, c as d\nfrom .x import (y as z,\n  w)  # both": ["a", "d", "z", "w"],
    "def f(a, b=1):\n    global g\n    g = l = 1\n    def inner(): pass": ["f", "g"],
    "async def f(): x = 1": ["f"],
    "f = lambda a: (b := a)": ["f"],
    "print(a, sep=b)": [],
    "match = case = type = 1": ["match", "case", "type"],
    "x = 1; y = 2": ["x", "y"],
  };
  for (const [code, bound] of Object.entries(cases)) expect(readProgram(code).bound, code).toEqual(bound);
});

test("a function is saved if its source alone recreates it", () => {
  const kept = (code: string): readonly string[] => readProgram(code).functions.map(({ source }) => source);
  const plain = "def f(a, b=(1, -2.5, 'x', None, True), *c, d={}, **e) -> int:\n    return a";
  expect(kept(`${plain}\n\n\n# after\nf(1)`)).toEqual([plain]);
  expect(kept("square = lambda x, n=2: x ** n  # why\n")).toEqual(["square = lambda x, n=2: x ** n"]);
  expect(kept("async def f(): pass")).toEqual(["async def f(): pass"]);
  for (const code of [
    "def f(a=now()): pass",
    "def f(a=other): pass",
    "def f(a=f'{x}'): pass",
    "def f(a=[x]): pass",
    "@wrap\ndef f(): pass",
    "if x:\n    def f(): pass",
    "a = b = lambda: 1",
    "a.b = lambda: 1",
    "f = wrap(lambda: 1)",
    "f = lambda: 1, 2",
  ]) {
    expect(kept(code), code).toEqual([]);
  }
});

test("the last expression is found if there is one", () => {
  const result = (code: string): string | undefined => {
    const { result: at } = readProgram(code);
    return at === undefined ? undefined : code.slice(at);
  };
  expect(result("x = 1\nx + 1\n")).toBe("x + 1\n");
  expect(result("x = 1; x  # so\n# end")).toBe("x  # so\n# end");
  expect(result("x; y;")).toBe("y;");
  expect(result("x = 1")).toBeUndefined();
  expect(result("for i in x:\n    i")).toBeUndefined();
  expect(result("")).toBeUndefined();
});

test("any text is read, in time that grows with its length", () => {
  const piece = fc.constantFrom(
    ..."def lambda x = ( ) [ ] : , \n    ' \" # \\ import from as if in f'{ } @ ; * 1".split(" "),
    "\n",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
      const code = pieces.join(" ");
      const { functions, result = 0 } = readProgram(code);
      expect(result).toBeLessThanOrEqual(code.length);
      for (const { end } of functions) expect(end === code.length || code[end - 1] === "\n").toBe(true);
    }),
    { numRuns: rounds(40, 500) },
  );
  for (const part of ["(", "f'{", "x = lambda: ", "def f():\n ", "a, ", "'''", "import a as "]) {
    const started = processorMs();
    readProgram(part.repeat(20_000));
    expect(processorMs() - started, part).toBeLessThan(10_000);
  }
});
