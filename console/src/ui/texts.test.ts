import { expect, test } from "vitest";
import { diffLines } from "./line-diff.ts";
import { splitBlocks } from "./split-blocks.ts";
import { visible } from "./text.ts";

test("characters that change the direction of a line or control a terminal are shown as codes", () => {
  expect(visible("a\u202eb\u0007c\u2066")).toBe("a[U+202E]b[U+0007]c[U+2066]");
  expect(visible("line\n\ttab · é 漢 👍")).toBe("line\n\ttab · é 漢 👍");
});

test("a diff leaves out the common beginning and end of two texts", () => {
  const lines = diffLines("1\n2\n3\n4\nold\n6", "1\n2\n3\n4\nnew\nmore\n6");
  expect(lines.map(({ mark, text }) => mark + text)).toEqual([
    "@1 line",
    " 2",
    " 3",
    " 4",
    "-old",
    "+new",
    "+more",
    " 6",
  ]);
  expect(diffLines("", "a\nb").every(({ mark }) => mark === "+")).toBe(true);
});

test("a growing text keeps the rendered blocks before its end", () => {
  const text = "# Title\n\nOne\ntwo\n\n```ts\nconst a = 1;\n\nconst b = 2;\n```\n\n- a\n\n- b\n";
  expect(splitBlocks(text)).toEqual([
    "# Title",
    "One\ntwo",
    "```ts\nconst a = 1;\n\nconst b = 2;\n```",
    "- a\n\n- b\n",
  ]);
  for (let end = 1; end < text.length; end += 1) {
    const before = splitBlocks(text.slice(0, end)).slice(0, -1);
    expect(splitBlocks(text).slice(0, before.length)).toEqual(before);
  }
});
