import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { processorMs } from "../../testing/processor-time.ts";
import { type DataFormat, dataFormatOf, readRecords } from "./read-data-file.ts";

const valuesOf = (text: string, format: DataFormat) =>
  readRecords(text, format).records.map(({ value }) => value);

test("a file holds a list, {specs}, {blocks} or one record, in JSON as in YAML", () => {
  for (const text of ['[{"a":1},{"a":2}]', '{"specs":[{"a":1},{"a":2}]}', '{"blocks":[{"a":1},{"a":2}]}']) {
    expect(valuesOf(text, "json")).toEqual([{ a: 1 }, { a: 2 }]);
    expect(valuesOf(text, "yaml")).toEqual([{ a: 1 }, { a: 2 }]);
  }
  expect(valuesOf('{"a":1}', "json")).toEqual([{ a: 1 }]);
  expect(valuesOf("- a: 1\n- a: 2\n", "yaml")).toEqual([{ a: 1 }, { a: 2 }]);
  expect(valuesOf("a: 1\n---\nspecs:\n  - a: 2\n", "yaml")).toEqual([{ a: 1 }, { a: 2 }]);
  expect(valuesOf('{"a":1}\n\n{"a":2}\r\n', "jsonl")).toEqual([{ a: 1 }, { a: 2 }]);
});

test("each record and field has its line", () => {
  const json = '{\n  "specs": [\n    { "id": "x",\n      "title": "T" },\n    { "id": "y" }\n  ]\n}\n';
  const [first, second] = readRecords(json, "json").records;
  expect([first?.startLine, first?.endLine, first?.lineOf("title"), first?.lineOf("none")]).toEqual([
    3, 4, 4, 3,
  ]);
  expect([second?.startLine, second?.endLine]).toEqual([5, 5]);
  const yaml = "specs:\r\n  - id: x\r\n    content: |\r\n      a\r\n      b\r\n  - id: y\r\n";
  const [one, other] = readRecords(yaml, "yaml").records;
  expect([one?.startLine, one?.endLine, one?.lineOf("content")]).toEqual([2, 5, 3]);
  expect([other?.startLine, other?.endLine]).toEqual([6, 6]);
});

test("text that is neither JSON nor YAML is a problem with its line, and the other lines of JSONL load", () => {
  expect(readRecords('{"a": 1}\n{"a": \n{"a": 2}', "jsonl")).toMatchObject({
    records: [{ value: { a: 1 } }, { value: { a: 2 } }],
    problems: [{ line: 2 }],
  });
  expect(readRecords('{\n  "a": 1,\n  b\n}', "json")).toMatchObject({ records: [], problems: [{ line: 3 }] });
  expect(readRecords("a: 1\n---\nb: [\n", "yaml")).toMatchObject({
    records: [{ value: { a: 1 } }],
    problems: [{}],
  });
});

test("a key that occurs twice is a problem, and aliases are not read", () => {
  expect(readRecords('[{"a": 1,\n"a": 2}]', "json")).toMatchObject({
    records: [{ value: { a: 2 } }],
    problems: [{ line: 2, field: "a" }],
  });
  expect(readRecords("a: 1\na: 2\n", "yaml").problems).toMatchObject([{ line: 2, field: "a" }]);
  expect(readRecords("a: &x 1\nb: *x\n", "yaml")).toMatchObject({ records: [], problems: [{ line: 1 }] });
});

test("no key changes what an object inherits", () => {
  for (const [text, format] of [
    ['{"__proto__": {"evil": 1}, "a": {"__proto__": 1}}', "json"],
    ["__proto__:\n  evil: 1\na: {}\n", "yaml"],
  ] as const) {
    const [value] = valuesOf(text, format);
    expect(value).toEqual({ a: {} });
    expect((value as { evil?: unknown }).evil).toBeUndefined();
  }
});

test("the extension decides the format", () => {
  expect(["a.json", "a.JSONL", "a.ndjson", "a.yaml", "a.yml", "a.md", "json"].map(dataFormatOf)).toEqual([
    "json",
    "jsonl",
    "jsonl",
    "yaml",
    "yaml",
    undefined,
    undefined,
  ]);
});

test("no text makes it throw", () => {
  const pieces = fc.constantFrom(
    "{",
    "}",
    "[",
    "]",
    '"',
    ":",
    ",",
    "- ",
    "\n",
    "  ",
    "a",
    "&x",
    "*x",
    "!t",
    "|",
    ">",
    "---",
    "?",
    "\t",
    "#",
    "\\",
    "\u0000",
    "%",
    "'",
  );
  fc.assert(
    fc.property(
      fc.array(pieces, { maxLength: 40 }),
      fc.constantFrom("json", "jsonl", "yaml"),
      (parts, format) => {
        readRecords(parts.join(""), format as DataFormat);
      },
    ),
    { numRuns: 200 },
  );
});

describe("hostile files take no more than linear time and no deep stack", () => {
  const bomb = `a: &a [x, x]\n${Array.from({ length: 30 }, (_, n) => `a${n}: &b${n} [*a, *a]`).join("\n")}\n`;
  const cases: readonly [name: string, text: string, format: DataFormat][] = [
    ["alias bomb", bomb, "yaml"],
    ["deep flow", "[".repeat(200_000), "yaml"],
    ["deep block", Array.from({ length: 20_000 }, (_, n) => `${" ".repeat(n % 5000)}a:`).join("\n"), "yaml"],
    ["markers on one line", "- ".repeat(200_000), "yaml"],
    ["many keys", Array.from({ length: 40_000 }, (_, n) => `k${n}: v`).join("\n"), "yaml"],
    ["one long line", "- - a: ".repeat(36_000), "yaml"],
    ["long lines", `${"a: ".repeat(10_000)}\n`.repeat(8), "yaml"],
    ["larger than is read", "x".repeat(3_000_000), "yaml"],
    ["deep JSON", "[".repeat(2_000_000), "json"],
    ["open string", `"${"\\".repeat(2_000_000)}`, "json"],
    ["many lines", "{\n".repeat(200_000), "jsonl"],
    ["many records", `[${'{"id":"a"},'.repeat(100_000)}{}]`, "json"],
  ];
  test.each(cases)("%s", (_name, text, format) => {
    const start = processorMs();
    readRecords(text, format);
    expect(processorMs() - start).toBeLessThan(25_000);
  });
});
