import fc from "fast-check";
import { expect, test } from "vitest";
import type { ImagePart, TextPart } from "../../protocol/message.ts";
import { cutParts, cutText } from "./cut-parts.ts";

const text = (value: string): TextPart => ({ type: "text", text: value });
const image: ImagePart = { type: "image", media_type: "image/png", data: "AAAA" };

test("a text that fits is unchanged, and a longer one keeps its beginning and its end", () => {
  expect(cutText("short", 5)).toBe("short");
  expect(cutText("0123456789", 5)).toBe("0123\n[… 5 characters cut …]\n9");
  expect(cutText("0123456789", 0)).toBe("\n[… 10 characters cut …]\n");
});

test("a text is cut between code points, never inside an emoji", () => {
  expect(cutText("😀".repeat(10), 10)).toBe(`${"😀".repeat(3)}\n[… 6 characters cut …]\n😀`);
  expect(cutText("a\ud800b", 10)).toBe("a\ufffdb");
});

test("several texts are cut as one: the end is that of the last text, with one mark for the gap", () => {
  const parts = [
    text("begin".padEnd(100, "x")),
    image,
    text("y".repeat(1_000)),
    text("z".repeat(97)),
    text("end"),
  ];
  expect(cutParts(parts, 20)).toEqual([
    text("beginxxxxxxxxx\n[… 1180 characters cut …]\n"),
    image,
    text("zzz"),
    text("end"),
  ]);
  expect(cutParts([text("a"), image, text("b")], 2)).toEqual([text("a"), image, text("b")]);
});

test("the shown and the cut parts together are the original text", () => {
  const part = fc.oneof(fc.string({ unit: "grapheme", maxLength: 30 }).map(text), fc.constant(image));
  fc.assert(
    fc.property(fc.array(part, { maxLength: 8 }), fc.nat(60), (parts, limit) => {
      const join = (all: readonly (TextPart | ImagePart)[]): string =>
        all.map((one) => (one.type === "text" ? one.text : "")).join("");
      const [whole, output] = [join(parts), join(cutParts(parts, limit))];
      const found = /^(.*)\n\[… (\d+) characters cut …\]\n(.*)$/s.exec(output);
      if (whole.length <= limit) {
        expect(output).toBe(whole);
        return;
      }
      const [, before = "", count, after = ""] = found ?? [];
      expect(whole.startsWith(before) && whole.endsWith(after)).toBe(true);
      expect(before.length + after.length).toBeLessThanOrEqual(limit);
      expect([...before].length + [...after].length + Number(count)).toBe([...whole].length);
    }),
  );
});
