import fc from "fast-check";
import { expect, test } from "vitest";
import { processorMs } from "../testing/processor-time.ts";
import { cleanLine, cleanText } from "./clean-text.ts";

test("invisible characters are removed from a text, and ordinary text stays", () => {
  expect(cleanText("\u001b[31mred\u001b[0m \u202eevil\u200b\u0000\u{e0041} ok", 100)).toBe("red evil ok");
  expect(cleanText("Zeile 1\n\tZeile 2: äöü 日本 😀", 100)).toBe("Zeile 1\n\tZeile 2: äöü 日本 😀");
  expect(cleanLine("one\r\n  two\u2028three", 100)).toBe("one two three");
});

test("a long text is cut with an ellipsis, without reading its rest", () => {
  expect(cleanText("x".repeat(50), 10)).toBe(`${"x".repeat(10)}…`);
  const started = processorMs();
  expect(cleanText("\u001b[".repeat(20_000_000), 100).length).toBeLessThanOrEqual(101);
  expect(processorMs() - started).toBeLessThan(1_000);
});

test("any text becomes short, well-formed and printable", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.integer({ min: 1, max: 30 }), (text, max) => {
      const clean = cleanText(text, max);
      expect(clean.length).toBeLessThanOrEqual(max + 1);
      expect(clean.isWellFormed()).toBe(true);
      expect(clean).not.toMatch(/(?![\n\t])[\p{Cc}\p{Cf}]/u);
      expect(cleanLine(text, max)).not.toMatch(/[\n\t\r]/);
    }),
  );
});
