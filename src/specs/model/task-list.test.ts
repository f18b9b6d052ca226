import { expect, test } from "vitest";
import { processorMs } from "../../testing/processor-time.ts";
import { scanMarkdown } from "../markdown/scan-markdown.ts";
import { detailText, type TaskItem, taskItemsIn } from "./task-list.ts";

function itemsOf(
  text: string,
): (Pick<TaskItem, "line" | "state" | "optional" | "text" | "parent"> & { body: string })[] {
  const scan = scanMarkdown(text);
  return taskItemsIn(scan, 1, scan.lineCount).map((item) => ({
    line: item.line,
    state: item.state,
    optional: item.optional,
    text: item.text,
    parent: item.parent,
    body: detailText(scan, item),
  }));
}

test("states, stars, bullets and numbers in front of a box are read", () => {
  const text = "- [ ] 1. a\n* [x] b\n+ [X] c\n- [-] d\n- [~] e\n- [ ]* f\n1. [?] g\n- [ ]h\n";
  expect(itemsOf(text).map(({ state, optional, text }) => `${state}${optional ? "*" : ""}|${text}`)).toEqual([
    " |1. a",
    "x|b",
    "X|c",
    "-|d",
    "~|e",
    " *|f",
    "?|g",
    " |h",
  ]);
});

test("links, footnotes and placeholders in brackets are not boxes", () => {
  expect(
    itemsOf("- [x](a.md)\n- [a]: b\n- [P] tasks = parallel\n- []\n- [ab] c\n").map((item) => item.text),
  ).toEqual(["tasks = parallel"]);
});

test("the parent of a subtask is the item above it with a smaller indent", () => {
  const items = itemsOf("- [ ] a\n  - [ ] b\n    - [ ] c\n  - [ ] d\n- [ ] e\n\t- [ ] f\n");
  expect(items.map((item) => item.parent)).toEqual([undefined, 0, 1, 0, undefined, 4]);
});

test("an item keeps its own detail lines, not those of its subtasks", () => {
  const items = itemsOf("- [ ] a\n  - one\n\n    two\n  - [ ] b\n    - three\n  - four\n- [ ] c\n");
  expect(items.map((item) => item.body)).toEqual(["- one\n\n  two\n- four", "- three", ""]);
});

test("details end at a heading, a sibling bullet, and unindented text after a blank line", () => {
  expect(itemsOf("- [ ] a\n  - x\n## H\n  - y\n")[0]?.body).toBe("- x");
  expect(itemsOf("- [ ] a\n- sibling\n  - y\n")[0]?.body).toBe("");
  expect(itemsOf("- [ ] a\nlazy\n\nother\n")[0]?.body).toBe("lazy");
  expect(itemsOf("- [ ] a\n---\n")[0]?.body).toBe("");
});

test("a label in italics belongs to the task above it at any indent", () => {
  expect(itemsOf("- [ ] a\n\n_Requirements: 1.1_\n")[0]?.body).toBe("_Requirements: 1.1_");
  expect(itemsOf("- [ ] a\n- _Requirements: 1.1_\n")[0]?.body).toBe("- _Requirements: 1.1_");
});

test("a heading can be an item, with the lines and boxes below it", () => {
  const items = itemsOf(
    "## Plan\n#### - [x] 1.1 a\n- one\n\ntwo\n- [ ] b\n#### - [ ] 1.2 c\n### End\nthree\n",
  );
  expect(items.map(({ state, text, body, parent }) => [state, text, body, parent])).toEqual([
    ["x", "1.1 a", "- one\n\ntwo", undefined],
    [" ", "b", "", 0],
    [" ", "1.2 c", "", undefined],
  ]);
});

test("boxes in fences and comments are text; an indented fence belongs to its task", () => {
  expect(itemsOf("```\n- [ ] no\n```\n<!--\n- [ ] no\n-->\n")).toEqual([]);
  expect(itemsOf("- [ ] a\n  ```sh\n  - [ ] no\n  run\n  ```\n  - more\n").map((item) => item.body)).toEqual([
    "```sh\n- [ ] no\nrun\n```\n- more",
  ]);
});

test("tabs count to the next multiple of four when the common indent is taken off", () => {
  expect(itemsOf("- [ ] a\n\t- x\n\t\t- y\n")[0]?.body).toBe("- x\n\t- y");
});

test("deep nesting and long files take linear time", () => {
  const deep = Array.from({ length: 5000 }, (_, level) => `${"  ".repeat(level)}- [ ] ${level}`).join("\n");
  const flat = "- [ ] a\n  - detail\n\n".repeat(50_000);
  const start = processorMs();
  expect(itemsOf(deep)).toHaveLength(5000);
  expect(itemsOf(flat)).toHaveLength(50_000);
  expect(processorMs() - start).toBeLessThan(12_000);
});
