import { expect, test } from "vitest";
import { processorMs } from "../../testing/processor-time.ts";
import { blockTitle } from "./block-title.ts";

test("a title is the first paragraph with a letter or digit, without markers", () => {
  expect(blockTitle("\n---\n\n> - 1. Use tabs,\nalways.\n\nMore.")).toBe("Use tabs, always.");
  expect(blockTitle("## Tests\nWrite them.")).toBe("Tests");
  expect(blockTitle("Do this:\n- a\n- b")).toBe("Do this:");
  expect(blockTitle("**Bold** stays, `*.ts` too")).toBe("**Bold** stays, `*.ts` too");
  expect(blockTitle("日本語\r\nの規則")).toBe("日本語 の規則");
  for (const text of ["", " \n\t", "***\n---", "| | |"]) expect(blockTitle(text)).toBe("");
});

test("a long one is cut at a word, a long word in the middle, and never inside a character", () => {
  expect(blockTitle("word ".repeat(100))).toMatch(/word…$/);
  expect(blockTitle("x".repeat(500))).toHaveLength(120);
  expect(blockTitle(`${"x".repeat(118)}🎈🎈`)).toBe(`${"x".repeat(118)}…`);
});

test("control characters and line ends never reach a title", () => {
  expect(blockTitle("a\u001b[31mb\u0000c\u0085d\te")).toBe("a [31mb c d e");
});

test("a hostile text takes no time", () => {
  const start = processorMs();
  for (const part of ["\n", "#", "- ", "\u0000", "> "]) blockTitle(part.repeat(1_000_000));
  expect(processorMs() - start).toBeLessThan(1_000);
});
