import { PassThrough } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { displayWidth } from "../text/safe-text.ts";
import { createOutput } from "./output.ts";
import { type Column, fitWidths, printTable } from "./table.ts";

interface Row {
  readonly id: string;
  readonly title: string;
  readonly where: string;
}

const columns: readonly Column<Row>[] = [
  { header: "ID", value: (row) => row.id, isId: true },
  { header: "TITLE", value: (row) => row.title, cut: "end" },
  { header: "WHERE", value: (row) => row.where, cut: "start" },
];

const rows: readonly Row[] = [
  {
    id: "a-1",
    title: "Guests pay without an account, and get a receipt",
    where: "docs/specs/checkout/requirements.md:12",
  },
  { id: "a-22", title: "要件: 返金 (refund)", where: "docs/specs/refund.md:3" },
];

function print(width: number | undefined, given: readonly Row[] = rows): readonly string[] {
  const stdout = Object.assign(new PassThrough(), width === undefined ? {} : { isTTY: true, columns: width });
  printTable(createOutput(stdout, new PassThrough()), given, columns);
  const text = stripVTControlCharacters(String(stdout.read() ?? ""));
  return text.split("\n").slice(0, -1);
}

test("in a wide terminal the columns line up below their headings", () => {
  const [head = "", first = "", second = ""] = print(200);
  expect(head).toMatch(/^ID {4}TITLE +WHERE$/);
  for (const [line, row] of [
    [first, rows[0]],
    [second, rows[1]],
  ] as const) {
    expect(displayWidth(line.slice(0, line.indexOf(row?.where ?? "")))).toBe(head.indexOf("WHERE"));
  }
});

test("in a narrow terminal no line is too wide, and ids are cut before paths and texts", () => {
  const long = rows.map((row) => ({ ...row, id: `run_${"0".repeat(20)}${row.id}` }));
  for (const width of [40, 60, 80, 100]) {
    for (const line of print(width, long)) expect(displayWidth(line)).toBeLessThanOrEqual(width);
  }
  const [, first = ""] = print(110, long);
  expect(first).toMatch(/^…0+a-1 /);
  expect(first).toContain(long[0]?.title);
  expect(first).toContain(long[0]?.where);
});

test("texts and paths that would be cut too short get a separate line above the rest", () => {
  const lines = print(30, rows);
  expect(lines).toEqual([
    "Guests pay wi…  …rements.md:12",
    "  a-1",
    "要件: 返金 (r…  …s/refund.md:3",
    "  a-22",
  ]);
});

test("a cell can print different text in a terminal and in a pipe", () => {
  const column: Column<string> = { header: "SINCE", value: (time) => time, forPeople: () => "3 min ago" };
  const texts = [true, false].map((isTTY) => {
    const stdout = Object.assign(new PassThrough(), { isTTY, columns: 80 });
    printTable(createOutput(stdout, new PassThrough()), ["2026-11-22T10:00:00Z"], [column]);
    return stripVTControlCharacters(String(stdout.read()));
  });
  expect(texts).toEqual(["SINCE\n3 min ago\n", "2026-11-22T10:00:00Z\n"]);
});

test("a column without values is left out", () => {
  expect(print(80, [{ id: "x", title: "", where: "w" }])).toEqual(["ID  WHERE", "x   w"]);
});

test("in a pipe values are complete, separated by tabs, without a heading", () => {
  expect(print(undefined)).toEqual(rows.map((row) => `${row.id}\t${row.title}\t${row.where}`));
});

test("a value cannot add rows or columns", () => {
  expect(print(undefined, [{ id: "x", title: "a\tb\nc\u001b[2Jd", where: "w" }])).toEqual(["x\ta b cd\tw"]);
});

test("no rows print nothing", () => {
  expect(print(80, [])).toEqual([]);
});

test("the widest columns are cut first, and none below a readable width", () => {
  expect(
    fitWidths(
      [
        { width: 10, cut: undefined },
        { width: 50, cut: "end" },
        { width: 30, cut: "end" },
      ],
      60,
    ),
  ).toEqual([10, 23, 23]);
  expect(
    fitWidths(
      [
        { width: 50, cut: undefined },
        { width: 50, cut: "end" },
      ],
      40,
    ),
  ).toEqual([50, 12]);
  expect(
    fitWidths(
      [
        { width: 5, cut: "end" },
        { width: 5, cut: "end" },
      ],
      4,
    ),
  ).toEqual([5, 5]);
});
