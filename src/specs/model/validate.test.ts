import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import fc from "fast-check";
import { expect, test } from "vitest";
import { isIsoDate, validateBlock, validateBlocks } from "./validate.ts";

const valid = {
  id: "a",
  path: "specs/a.md",
  framework: "fw_a",
  spec_type: "requirement",
  title: "A",
  content: "a",
};

function problemsOf(block: unknown): string[] {
  return validateBlock(block, "blocks[0]").map(({ rule, field }) => `${rule} ${field}`);
}

test("a block with the required fields is valid, and so is one with all of them", () => {
  expect(validateBlocks([valid])).toEqual([]);
  const complete = {
    ...valid,
    id: "b",
    summary: "s".repeat(500),
    tags: ["x"],
    lifecycle: "legacy",
    priority: "low",
    created_at: "2026-01-01",
    updated_at: "2026-01-01T10:00:00Z",
    metadata: {},
  };
  expect(validateBlocks([valid, complete])).toEqual([]);
});

test.each(["id", "path", "framework", "spec_type", "title", "content"])("%s is required", (field) => {
  for (const value of [undefined, "", "  ", null, 7, ["a"]]) {
    expect(problemsOf({ ...valid, [field]: value }), String(value)).toEqual([`required-field ${field}`]);
  }
});

test.each(["framework", "spec_type", "lifecycle", "priority"])("%s must be one of its values", (field) => {
  expect(problemsOf({ ...valid, [field]: "other" })).toEqual([`enum ${field}`]);
  expect(problemsOf({ ...valid, [field]: "Active" })).toEqual([`enum ${field}`]);
});

test("an optional enum of the wrong type breaks the enum rule", () => {
  expect(problemsOf({ ...valid, lifecycle: null, priority: 1 })).toEqual(["enum lifecycle", "enum priority"]);
});

test("timestamps are ISO 8601", () => {
  expect(problemsOf({ ...valid, created_at: "2024-13-45", updated_at: "yesterday" })).toEqual([
    "timestamp created_at",
    "timestamp updated_at",
  ]);
  expect(problemsOf({ ...valid, created_at: 1_700_000_000 })).toEqual(["timestamp created_at"]);
});

test("a summary has at most 500 characters", () => {
  expect(problemsOf({ ...valid, summary: "s".repeat(501) })).toEqual(["summary-length summary"]);
  expect(problemsOf({ ...valid, summary: 5 })).toEqual(["structure summary"]);
});

test("tags and metadata have their shape, and a block is an object", () => {
  expect(problemsOf({ ...valid, tags: ["a", 1] })).toEqual(["structure tags"]);
  expect(problemsOf({ ...valid, metadata: [] })).toEqual(["structure metadata"]);
  for (const block of [null, [], "a", 3]) expect(problemsOf(block)).toEqual(["structure undefined"]);
});

test("an id that occurs again is an error of the later block, which names the first", () => {
  expect(validateBlocks([valid, { ...valid, path: "specs/b.md" }])).toEqual([
    {
      severity: "error",
      rule: "duplicate-id",
      message: 'blocks[0] has the id "a" already.',
      path: "specs/b.md",
      id: "a",
      field: "id",
    },
  ]);
});

test("a diagnostic has the path and line of its block, or the block's place", () => {
  const block = {
    ...valid,
    priority: "x".repeat(100),
    metadata: { source: { start_line: 12, end_line: 14 } },
  };
  expect(validateBlock(block, "blocks[0]")).toEqual([
    {
      severity: "error",
      rule: "enum",
      message: `"priority" must be one of critical, high, medium, low, not "${"x".repeat(59)}…".`,
      path: "specs/a.md",
      line: 12,
      id: "a",
      field: "priority",
    },
  ]);
  expect(validateBlocks([valid, {}])[0]?.path).toBe("blocks[1]");
});

test("a record with a hostile prototype key is only data", () => {
  const block: unknown = JSON.parse('{"__proto__": {"id": "x", "title": "t"}, "constructor": 1}');
  expect(problemsOf(block)).toContain("required-field id");
});

test.each([
  "2026-05-26",
  "2024-02-29",
  "2000-02-29",
  "2026-05-26T18:03:03Z",
  "2016-12-31T23:59:60Z",
  "2026-05-26T18:03:03.123456+01:00",
  "2026-05-26T18:03:03-0530",
])("%s is a date", (text) => {
  expect(isIsoDate(text)).toBe(true);
});

test.each([
  "",
  "yesterday",
  "2024-01-02T03:04",
  "2024-01-02T03:04Z",
  "2024-01-02T03:04:05",
  "2024-02-30",
  "2024-02-30T00:00:00Z",
  "2026-05-26T24:00:00Z",
  "2024-13-45",
  "2023-02-29",
  "1900-02-29",
  "2026-04-31",
  "2026-00-10",
  "2026-05-00",
  "2026-05",
  "20260526",
  "2026-W21-2",
  "2026-5-6",
  "26-05-26",
  "2026-05-26 18:03:03",
  "2024-01-02 03:04:05Z",
  "2026-05-26T18:03:60Z",
  "2026-05-26T24:00:00",
  "2026-05-26T18:60:00",
  "2026-05-26T18:03:60",
  "2026-05-26T18",
  "2026-05-26T18:03:03+25:00",
  "2026-05-26Z",
  " 2026-05-26",
  "2026-05-26\n",
])("%j is not a date", (text) => {
  expect(isIsoDate(text)).toBe(false);
});

test("every date that JavaScript prints is a date, and every date and time that passes, it reads", () => {
  fc.assert(
    fc.property(
      fc.date({ min: new Date("0001-01-01"), max: new Date("9999-12-31"), noInvalidDate: true }),
      (date) => {
        expect(isIsoDate(date.toISOString())).toBe(true);
        expect(isIsoDate(date.toISOString().slice(0, 10))).toBe(true);
      },
    ),
  );
  const part = (max: number) => fc.integer({ min: 0, max }).map((n) => String(n).padStart(2, "0"));
  fc.assert(
    fc.property(part(13), part(32), part(25), (month, day, hour) => {
      const text = `2023-${month}-${day}T${hour}:00:00Z`;
      const read = new Date(text);
      const isSame = !Number.isNaN(read.getTime()) && read.toISOString().startsWith(text.slice(0, 19));
      expect(isIsoDate(text)).toBe(isSame);
    }),
  );
});

test("the validator and the published schema agree on every timestamp and summary", () => {
  const ajv = new Ajv2020({ allErrors: true, strict: false });
  formats.default(ajv);
  const isPublished = ajv.compile(JSON.parse(readFileSync("schema/spec-block.json", "utf8")));
  const block = {
    id: "a",
    path: "a.md",
    framework: "custom",
    spec_type: "requirement",
    title: "A",
    content: "a",
    tags: [],
    lifecycle: "active",
    priority: "medium",
    metadata: {},
  };
  const judgeAlike = (fields: Readonly<Record<string, string>>): void => {
    const own = validateBlocks([{ ...block, ...fields }]);
    expect([fields, own.length === 0]).toEqual([fields, isPublished({ ...block, ...fields })]);
  };
  const digits = fc.constantFrom(
    "00",
    "01",
    "02",
    "12",
    "13",
    "23",
    "24",
    "28",
    "29",
    "30",
    "31",
    "59",
    "60",
    "61",
  );
  const timestamp = fc
    .tuple(
      fc.constantFrom("2023", "2024", "1900", "2000", "0000", "24", "12024"),
      fc.constantFrom("-", "", "/"),
      digits,
      digits,
      fc.constantFrom("T", "t", " ", "", "TT", "-W"),
      fc.array(digits, { maxLength: 4 }),
      fc.constantFrom("", ".5", ".", ",5", ".123456789012345678901234567890123456789"),
      fc.constantFrom("", "Z", "z", "+01:00", "-0530", "+01", "+25:00", "-23:59", "+00:60", "Z\n", " Z"),
    )
    .map(([y, dash, m, d, t, time, f, zone]) => `${y}${dash}${m}${dash}${d}${t}${time.join(":")}${f}${zone}`);
  fc.assert(
    fc.property(
      fc.oneof({ weight: 4, arbitrary: timestamp }, { weight: 1, arbitrary: fc.string() }),
      (text) => {
        judgeAlike({ created_at: text });
        judgeAlike({ updated_at: text });
      },
    ),
    { numRuns: 400 },
  );
  for (const unit of ["a", "é", "😀", "👩‍👩‍👧", "e\u0301"])
    for (const count of [100, 249, 250, 251, 499, 500, 501]) judgeAlike({ summary: unit.repeat(count) });
});
