import { PassThrough } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { displayWidth } from "../text/safe-text.ts";
import { createOutput } from "./output.ts";
import { type Column, fitWidths, placeColumn, printTable } from "./table.ts";

interface Row {
  readonly id: string;
  readonly title: string;
  readonly where: string;
}

const columns: readonly Column<Row>[] = [
  { header: "ID", value: (row) => row.id },
  { header: "TITLE", value: (row) => row.title, wraps: true },
  { header: "WHERE", value: (row) => row.where },
];

const rows: readonly Row[] = [
  {
    id: "a-1",
    title: "Guests pay without an account, and get a receipt",
    where: "docs/specs/checkout/requirements.md:12",
  },
  { id: "a-22", title: "要件: 返金 (refund)", where: "docs/specs/refund.md:3" },
];

function print(
  width: number | undefined,
  given: readonly Row[] = rows,
  tableColumns: readonly Column<Row>[] = columns,
): readonly string[] {
  const stdout = Object.assign(new PassThrough(), width === undefined ? {} : { isTTY: true, columns: width });
  printTable(createOutput(stdout, new PassThrough()), given, tableColumns);
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

test("in a narrow terminal ids and paths stay whole, and the text is wrapped", () => {
  const lines = print(70);
  expect(lines).toEqual([
    "ID    TITLE                     WHERE",
    "a-1   Guests pay without an     docs/specs/checkout/requirements.md:12",
    "      account, and get a",
    "      receipt",
    "a-22  要件: 返金 (refund)       docs/specs/refund.md:3",
  ]);
});

test("columns for which the line has no room stand below it, texts first", () => {
  expect(print(50)).toEqual([
    "ID    WHERE",
    "a-1   docs/specs/checkout/requirements.md:12",
    "  Guests pay without an account, and get a receipt",
    "a-22  docs/specs/refund.md:3",
    "  要件: 返金 (refund)",
  ]);
  expect(print(40, rows.slice(0, 1))).toEqual([
    "ID",
    "a-1",
    "  Guests pay without an account, and get",
    "  a receipt",
    "  docs/specs/checkout/requirements.md:12",
  ]);
});

test("an id wider than the terminal is printed whole", () => {
  const id = `run_${"0".repeat(60)}`;
  for (const width of [20, 40, 60])
    expect(print(width, [{ id, title: "a b", where: "w" }]).join("\n")).toContain(id);
});

test("a text of many lines ends in …", () => {
  const lines = print(40, [{ id: "x", title: "word ".repeat(100), where: "" }]);
  expect(lines).toHaveLength(5);
  expect(lines.at(-1)).toMatch(/…$/);
});

test("rows with a place are grouped by file, each with its line", () => {
  const placed: readonly Column<Row>[] = [
    ...columns.slice(0, 2),
    placeColumn(({ where }) => ({ path: where.replace(/:.*/, ""), line: Number(where.replace(/.*:/, "")) })),
  ];
  const given = [
    { id: "a#1", title: "First", where: "a.md:9" },
    { id: "b#1", title: "Second", where: "b.md:1" },
    { id: "a#2", title: "Third", where: "a.md:30" },
  ];
  expect(print(80, given, placed)).toEqual([
    "  LINE  ID   TITLE",
    "a.md",
    "     9  a#1  First",
    "    30  a#2  Third",
    "b.md",
    "     1  b#1  Second",
  ]);
  const inOrder = placed.map((column) => (column.place ? { ...column, inOrder: true as const } : column));
  expect(print(80, given, inOrder).filter((line) => line.endsWith(".md"))).toEqual(["a.md", "b.md", "a.md"]);
  expect(print(undefined, given, placed)[0]).toBe("a#1\tFirst\ta.md:9");
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

test("the widest columns shrink first, and none below its least width", () => {
  const text = (width: number): { width: number; least: number } => ({ width, least: Math.min(width, 12) });
  expect(fitWidths([{ width: 10, least: 10 }, text(50), text(30)], 60)).toEqual([10, 23, 23]);
  expect(fitWidths([{ width: 50, least: 50 }, text(50)], 40)).toEqual([50, 12]);
  expect(fitWidths([text(5), text(5)], 4)).toEqual([5, 5]);
});
