import fc from "fast-check";
import { expect, test } from "vitest";
import { processorMs } from "../../testing/processor-time.ts";
import { safeLine, safeLines, toSafeJson } from "./safe-text.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for.
const harmful = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069\u200E\u200F\u061C\uFEFF]/;

test("a title loses its terminal sequences and keeps its words", () => {
  expect(safeLine("# A\u001b[2J\u001b[31mred\n\nx\n")).toBe("# Ared x");
  expect(safeLine("\u001b]8;;https://evil.example\u0007click\u001b]8;;\u0007")).toBe("click");
  expect(safeLine("\u001b]0;title\u001b\\a\u009b31mb")).toBe("ab");
});

test("an unfinished sequence does not hide the text after it", () => {
  expect(safeLine("a\u001b]0;title and text")).toBe("a0;title and text");
  expect(safeLine("a\u001bPtext")).toBe("atext");
});

test("bidirectional overrides are removed, and letters of right-to-left scripts stay", () => {
  expect(safeLine("user\u202Enimda\u2066x\u2069 שלום")).toBe("usernimdax שלום");
});

test("several lines keep their line breaks and tabs", () => {
  expect(safeLines("a\r\nb\rc\u2028d\te\u0007")).toBe("a\nb\nc\nd\te");
});

test("no text keeps a character that a terminal would execute", () => {
  const hostile = fc.string({
    unit: fc.constantFrom("\u001b", "[", "]", ";", "\u0007", "\u009b", "a", "\n", "\\", "\u202e", "P", "1"),
  });
  fc.assert(
    fc.property(fc.oneof(hostile, fc.string({ unit: "binary" })), (text) => {
      expect(safeLines(text)).not.toMatch(harmful);
      expect(safeLine(text)).not.toMatch(/[\n\t]/);
    }),
  );
});

test("unfinished sequences take linear time", () => {
  const started = processorMs();
  for (const piece of ["\u001b]8;;", "\u001b[1;", "\u001b]", "\u001bP"]) safeLine(piece.repeat(200_000));
  safeLine(`\u001b]${"a".repeat(1_000_000)}`);
  expect(processorMs() - started).toBeLessThan(2000);
});

test("JSON for a terminal has the same content without raw control characters", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      const json = toSafeJson({ text });
      expect(json.replaceAll("\n", "")).not.toMatch(harmful);
      expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify({ text })));
    }),
  );
});
