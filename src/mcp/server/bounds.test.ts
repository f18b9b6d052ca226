import fc from "fast-check";
import { expect, test } from "vitest";
import { cutText, maxAnswerLength, pageOf, partOf } from "./bounds.ts";

test("pages of any size together are the whole list", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ maxLength: 3_000 }), { maxLength: 60 }), (list) => {
      const seen: string[] = [];
      let cursor: string | undefined;
      do {
        const page = pageOf(list, { cursor, toItem: (item) => item });
        expect(page.total).toBe(list.length);
        seen.push(...page.items);
        cursor = page.next_cursor;
      } while (cursor !== undefined);
      expect(seen).toEqual(list);
    }),
  );
});

test("a page fits into an answer, but has at least one item", () => {
  const list = Array<string>(100).fill("x".repeat(1_000));
  const page = pageOf(list, { toItem: (item) => item });
  expect(JSON.stringify(page.items).length).toBeLessThan(maxAnswerLength + 1_000);
  expect(page.next_cursor).toBe(String(page.items.length));
  const long = "x".repeat(2 * maxAnswerLength);
  expect(pageOf([long, long], { toItem: (item) => item })).toMatchObject({ items: [long], next_cursor: "1" });
});

test("a cursor past the end or of another list returns an empty last page", () => {
  for (const cursor of ["3", "999999999", "-1", "x", ""]) {
    expect(pageOf(["a", "b"], { cursor, toItem: (item) => item })).toEqual({ items: [], total: 2 });
  }
});

test("a cut text reports how much is missing, and is still valid Unicode", () => {
  expect(cutText("short", 10)).toEqual({ content: "short" });
  expect(cutText("0123456789", 4)).toEqual({ content: "0123", content_cut: 6 });
  expect(cutText("ab😀cd", 3)).toEqual({ content: "ab", content_cut: 3 });
});

test("the parts of a long text together are the text", () => {
  const text = "😀".repeat(maxAnswerLength + 1);
  const first = partOf(text, undefined);
  const second = partOf(text, first.next_cursor);
  const third = partOf(text, second.next_cursor);
  expect(first.content + second.content + third.content).toBe(text);
  expect(third.next_cursor).toBeUndefined();
  expect(partOf("short", undefined)).toEqual({ content: "short" });
  expect(partOf("short", "x")).toEqual({ content: "" });
});
