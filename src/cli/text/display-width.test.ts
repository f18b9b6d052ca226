import fc from "fast-check";
import { expect, test } from "vitest";
import { processorMs } from "../../testing/processor-time.ts";
import { displayWidth, pad, truncate, wrap } from "./safe-text.ts";

test("East Asian wide characters and emoji occupy two columns, combining marks none", () => {
  expect(displayWidth("要件 1")).toBe(6);
  expect(displayWidth("👩‍👩‍👧 ok")).toBe(5);
  expect(displayWidth("e\u0301")).toBe(1);
  expect(displayWidth("Größe – ok…")).toBe(11);
});

test("a text is cut at complete characters, with … in the last column", () => {
  expect(truncate("requirement", 8)).toBe("require…");
  expect(truncate("要件要件要件", 6)).toBe("要件…");
  expect(truncate("docs/specs/cart.md", 9, "start")).toBe("…/cart.md");
  expect(truncate("packages/shop/docs/specs/cart.md", 20, "middle")).toBe("package…pecs/cart.md");
  for (let width = 3; width < 40; width += 1)
    for (const path of ["packages/shop/docs/specs/cart.md", "docs/要件定義書/返金.md"])
      expect(displayWidth(truncate(path, width, "middle"))).toBeLessThanOrEqual(width);
  expect(truncate("short", 5)).toBe("short");
});

test("a cut text is never wider than allowed", () => {
  const unit = fc.constantFrom("a", "要", "e\u0301", "👩‍👩‍👧", " ", "ｱ", "한");
  fc.assert(
    fc.property(
      fc.string({ unit }),
      fc.integer({ min: 1, max: 20 }),
      fc.constantFrom("start", "end"),
      (text, width, cut) => {
        expect(displayWidth(truncate(text, width, cut as "start" | "end"))).toBeLessThanOrEqual(width);
      },
    ),
  );
});

test("a very long text is cut without measuring all of it", () => {
  const started = processorMs();
  truncate("要".repeat(2_000_000), 20);
  truncate("要".repeat(2_000_000), 20, "start");
  expect(processorMs() - started).toBeLessThan(500);
});

test("padding counts columns, not characters", () => {
  expect(pad("要件", 6)).toBe("要件  ");
  expect(pad("7", 3, "right")).toBe("  7");
  expect(pad("long", 2)).toBe("long");
});

test("a line is wrapped at spaces, and longer words stay unbroken", () => {
  expect(wrap("one two three four", 9)).toEqual(["one two", "three", "four"]);
  expect(wrap("see docs/a/very/long/path.md now", 10)).toEqual(["see", "docs/a/very/long/path.md", "now"]);
  expect(wrap("要件 要件 要件", 9)).toEqual(["要件 要件", "要件"]);
  expect(wrap("", 5)).toEqual([""]);
  expect(wrap("  one two three", 9)).toEqual(["  one two", "  three"]);
});
