import { afterAll, expect, test } from "vitest";
import type { PythonSession } from "./contract.ts";
import { createPython } from "./create-python.ts";

const python = createPython();
afterAll(() => python.close());

class Point {
  readonly #secret = "constructor ran";
  readonly x: number;
  readonly y: number;

  constructor(x: number, y: number) {
    this.x = x;
    this.y = y;
  }

  norm(factor = 1): number {
    return Math.hypot(this.x, this.y) * factor;
  }

  proof(): string {
    return this.#secret;
  }
}

function withPoint(): PythonSession {
  const session = python.createSession();
  session.registerDataclass<Point>({
    name: "Point",
    fields: ["x", { name: "y", default: 0 }],
    class: Point,
    create: ({ x, y }) => new Point(Number(x), Number(y)),
    methods: {
      norm: (self, factor?: number) => self.norm(factor),
      moved: (self, { by }: { readonly by: number }) => new Point(self.x + by, self.y + by),
      proof: (self) => self.proof(),
      fail: () => {
        throw new RangeError("no such point");
      },
    },
  });
  return session;
}

test("a dataclass constructed in Python is returned as an instance", async () => {
  const session = withPoint();
  const { result } = await session.run("p = Point(3, y=4)\n[p, p.x, p == Point(3, 4), repr(p), Point(1)]");
  expect(result).toEqual([new Point(3, 4), 3, true, "Point(x=3, y=4)", new Point(1, 0)]);
  const [first] = result as readonly unknown[];
  expect(first).toBeInstanceOf(Point);
});

test("methods run on the host with the current instance", async () => {
  const session = withPoint();
  const code =
    "p = Point(3, 4)\np.x = 6\np.y = 8\nq = p.moved(by=1)\n[p.norm(), p.norm(2), q, q.norm() > 1, p.proof()]";
  expect((await session.run(code)).result).toEqual([10, 20, new Point(7, 9), true, "constructor ran"]);
  const failing = "try:\n    Point(1).fail()\nexcept ValueError as e:\n    r = str(e)\nr";
  expect((await session.run(failing)).result).toBe("no such point");
});

test("instances can be inputs, parts of containers, and results of functions", async () => {
  const session = withPoint();
  const { result } = await session.run("[points['a'].x + make(5).y, make(1)]", {
    inputs: { points: { a: new Point(1, 2) } },
    functions: { make: (n: number) => new Point(n, n) },
  });
  expect(result).toEqual([6, new Point(1, 1)]);
});

test("instances are kept between runs and in a dump", async () => {
  const session = withPoint();
  await session.run("p = Point(3, 4)\nboth = [p, p]");
  await session.run("both[0].x = 30");
  expect((await session.run("[p, both[1].x, both[0] is both[1]]")).result).toEqual([
    new Point(30, 4),
    30,
    true,
  ]);
  const other = withPoint();
  await other.load(await session.dump());
  expect((await other.run("p.norm() > 30")).result).toBe(true);
  const stranger = python.createSession();
  await stranger.load(await session.dump());
  expect((await stranger.run("p")).result).toEqual({ x: 30, y: 4 });
  await expect(stranger.run("p.norm()")).rejects.toMatchObject({ exception: { type: "AttributeError" } });
});

test("wrong arguments, unknown methods and frozen fields raise Python's usual exceptions", async () => {
  const session = withPoint();
  session.registerDataclass({ name: "Fixed", fields: ["v"], frozen: true });
  const cases: readonly (readonly [string, string])[] = [
    ["Point()", "TypeError: Point.__init__() missing a required argument: 'x'"],
    ["Point(1, 2, 3)", "TypeError: Point.__init__() takes 2 positional arguments but 3 were given"],
    ["Point(1, x=2)", "TypeError: Point.__init__() got multiple values for argument 'x'"],
    ["Point(1, z=2)", "TypeError: Point.__init__() got an unexpected keyword argument 'z'"],
    ["Point(1).nope()", "AttributeError: 'Point' object has no attribute 'nope'"],
    ["Point(1).constructor()", "AttributeError: 'Point' object has no attribute 'constructor'"],
    ["Point(1)._hidden()", "AttributeError: 'Point' object has no attribute '_hidden'"],
    ["Fixed(1).v = 2", "FrozenInstanceError: cannot assign to field 'v'"],
  ];
  for (const [code, message] of cases) await expect(session.run(code)).rejects.toThrow(message);
  expect((await session.run("{Fixed(1): 'a'}[Fixed(1)]")).result).toBe("a");
});

test("without a class, instances are returned as plain objects, which Python recognizes again", async () => {
  const session = python.createSession();
  session.registerDataclass({
    name: "Pair",
    fields: ["a", "b"],
    methods: { sum: (self) => Number(self.a) + 1 },
  });
  const { result } = await session.run("Pair(1, [Pair(2, None)])");
  expect(result).toEqual({ a: 1, b: [{ a: 2, b: null }] });
  expect((await session.run("back.sum()", { inputs: { back: result } })).result).toBe(2);
  session.registerDataclass<Point>({ name: "Pair", fields: ["x", "y"], class: Point });
  const again = await session.run("Pair(1, 2)");
  expect(again.result).toBeInstanceOf(Point);
});

test("a method and a function can have the same name", async () => {
  const session = withPoint();
  const { result } = await session.run("[norm(Point(3, 4)), Point(3, 4).norm()]", {
    functions: { norm: () => "function" },
  });
  expect(result).toEqual(["function", 5]);
});

test("an invalid dataclass is refused at registration", () => {
  const session = python.createSession();
  const bad = [
    { name: "a b", fields: [] },
    { name: "class", fields: [] },
    { name: "A", fields: ["__proto__"] },
    { name: "A", fields: ["x", "x"] },
    { name: "A", fields: [{ name: "x", default: 1 }, "y"] },
    { name: "A", fields: ["x"], methods: { x: () => 1 } },
    { name: "A", fields: ["x"], methods: { _y: () => 1 } },
  ];
  for (const dataclass of bad) {
    expect(() => session.registerDataclass(dataclass)).toThrow(
      expect.objectContaining({ code: "invalid_request" }),
    );
  }
});

test("a run whose result cannot be created on the host changes no variables", async () => {
  const session = python.createSession();
  session.registerDataclass({
    name: "Age",
    fields: ["years"],
    create: ({ years }) => {
      if (Number(years) < 0) throw new RangeError("no age is below zero");
      return { years };
    },
  });
  session.registerDataclass({ name: "Lost", fields: [], create: () => undefined as unknown as object });
  await session.run("n = 1");
  await expect(session.run("n = 2\nm = 3\n[Age(5), Age(-1)]")).rejects.toThrow("no age is below zero");
  await expect(session.run("n = 2\nLost()")).rejects.toMatchObject({
    code: "invalid_request",
    message: "`create` of the dataclass Lost gave no object.",
  });
  expect((await session.run("n")).result).toBe(1);
  await expect(session.run("m")).rejects.toMatchObject({ exception: { type: "NameError" } });
  expect(() => session.registerDataclass({ name: "A", field: ["x"] } as never)).toThrow(
    "did you mean fields?",
  );
});
