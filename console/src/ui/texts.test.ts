import { expect, test } from "vitest";
import { diffLines } from "./line-diff.ts";
import { splitBlocks } from "./split-blocks.ts";
import { firstWords, formatAge, formatDuration, formatMoment, visible } from "./text.ts";

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

test("a duration is never 60 seconds of a minute or 1,000 ms of a second", () => {
  expect([999.6, 59_600, 119_600, 3_599_900, 93_600_000, 190_000_000].map(formatDuration)).toEqual([
    "1.0 s",
    "1 min 0 s",
    "2 min 0 s",
    "1 h 0 min",
    "1 day 2 h",
    "2 days 4 h",
  ]);
});

test("a time to come says when it is and how long that takes; an old one says its day, and its year if it is another", () => {
  const now = Date.parse("2026-11-24T12:00:00");
  const after = (hours: number): string => new Date(now + hours * 3_600_000).toISOString();
  expect(formatAge(after(47), now)).toBe("in 2 days");
  expect(formatAge(after(-3), now)).toBe("3 h ago");
  expect(formatMoment(after(48), now)).toMatch(/26.*, in 2 days$/);
  expect(formatMoment(after(3), now)).toMatch(/3:00.*, in 3 h$/);
  expect(formatAge(after(-24 * 400), now)).toMatch(/2025/);
  expect(formatAge(after(-48), now)).not.toMatch(/2026/);
});

test("the first words of a payload are its fields in one line", () => {
  expect(firstWords({ order: 12, note: "two\nlines", deep: { a: [1] } })).toBe(
    'order: 12, note: two lines, deep: {"a":[1]}',
  );
  expect([firstWords("  a\n b "), firstWords({}), firstWords(undefined), firstWords([1])]).toEqual([
    "a b",
    "",
    "",
    "[1]",
  ]);
});
