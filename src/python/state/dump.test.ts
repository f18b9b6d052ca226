import { createHash } from "node:crypto";
import { afterAll, expect, test } from "vitest";
import { createPython } from "../create-python.ts";

const python = createPython({ maxRunning: 1 });
afterAll(() => python.close());

/** A dump with this content, forged by an author who knows the format. */
function forge(content: object): Uint8Array {
  const body = JSON.stringify({ functions: [], imports: [], variables: [], ...content });
  const head = JSON.stringify({ kit_python: 2, sha256: createHash("sha256").update(body).digest("hex") });
  return new TextEncoder().encode(`${head.slice(0, -1)},${body.slice(1)}`);
}

const withData = (data: string): Uint8Array =>
  forge({ variables: [{ name: "x", functions: [], shares: [], batch: 1, data }] });

/** A dump of the variable `x` with these values beside this table; texts are taken as they are. */
function variable(values: unknown, table: unknown): Uint8Array {
  const text = (part: unknown): string => (typeof part === "string" ? part : JSON.stringify(part));
  return withData(`${text(values)}\n${text(table)}`);
}

const entry = (made: unknown): unknown => [0, 0, [made]];
const withTable = (value: unknown): Uint8Array => variable([[0, value]], entry(["native", 0]));
const withFunction = (source: string): Uint8Array =>
  forge({ functions: [{ name: "x", source, mentions: [] }] });

const forged: Readonly<Record<string, Uint8Array>> = {
  "bytes that are no table": withData("\u{1f600}"),
  "values that are no JSON": variable("nope", entry(["v", 1])),
  "values that are no list": variable("null", entry(["v", 1])),
  "a table that is not JSON": variable([], "nope"),
  "a table of another shape": variable([], 5),
  "a variable that is not in it": variable([], [0, 0, []]),
  "a place that is not there": variable([], [7, 0, [["v", 1]]]),
  "a place far away": variable([], [0, 1e12, [["v", 1]]]),
  "an entry of no kind": variable([], entry(["z", 5])),
  "a tuple that holds itself": variable([], entry(["tuple", ["n", [0]]])),
  "a function that is not there": variable([], entry(["function", "nowhere"])),
  "a pattern that is none": variable([], entry(["pattern", "(", 0])),
  "a value of no kind": withTable({ t: "nope", v: 1 }),
  "a number that is none": withTable({ t: "int", v: "abc" }),
  "a time of no kind": withTable({ t: "time", v: { kind: "Nope" } }),
  "a date of no day": withTable({ t: "time", v: { kind: "Date", year: -5, month: 99, day: 1 } }),
  "a field with NUL": withTable({ t: "dataclass", name: "P", frozen: false, fields: ["a\0"], v: [1] }),
  "a dataclass without its fields": withTable({
    t: "dataclass",
    name: "P",
    frozen: false,
    fields: ["a"],
    v: [],
  }),
  "a key that cannot be hashed": withTable({ t: "dict", v: [[{ t: "dict", v: [] }, 1]] }),
  "a value without end": variable(`[[0,${"[".repeat(20_000)}${"]".repeat(20_000)}]]`, entry(["native", 0])),
  "a function of another name": withFunction("y = 1"),
  "a function that does not compile": withFunction("def x(:"),
  "a function that raises": withFunction("1 / 0"),
  "an import that is none": forge({ imports: [{ name: "x", source: "import nope as x" }] }),
};

for (const [name, dump] of Object.entries(forged)) {
  test(`a forged dump with ${name} is refused, and harms no other session`, async () => {
    const session = python.createSession();
    const error: unknown = await session
      .load(dump)
      .then(() => session.run("x"))
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: "invalid_request",
      message: expect.stringMatching(/^(Python could not start the code: |This dump of Python)/),
    });
    expect((await session.run("1 + 1")).result).toBe(2);
  });
}

test("a value that is not bytes is not a dump", async () => {
  for (const value of [
    null,
    undefined,
    "text",
    {},
    [1, 2],
    new ArrayBuffer(3),
    new DataView(new ArrayBuffer(99)),
  ]) {
    await expect(python.createSession().load(value as Uint8Array)).rejects.toMatchObject({
      code: "invalid_request",
      message: "A dump of Python variables must be a Uint8Array.",
    });
  }
});
