import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeText } from "./source-reader.ts";

const decode = (...bytes: readonly number[]) => decodeText(Uint8Array.from(bytes), "a.md");
const codes = (bytes: Uint8Array): unknown[] =>
  decodeText(bytes, "a.md").diagnostics.map(({ code, line }) => [code, line]);
const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

test("any text comes back as it was written", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      fc.pre(!text.startsWith("\ufeff") && !text.includes("\0"));
      expect(decodeText(utf8(text), "a.md")).toEqual({ text, diagnostics: [] });
    }),
  );
});

test("a byte order mark is dropped", () => {
  expect(decodeText(utf8("\ufeff# A\n"), "a.md")).toEqual({ text: "# A\n", diagnostics: [] });
});

test("UTF-16 of either byte order is read and reported", () => {
  expect(decode(0xff, 0xfe, 0x41, 0, 0x0a, 0)).toMatchObject({
    text: "A\n",
    diagnostics: [{ code: "utf16" }],
  });
  expect(decode(0xfe, 0xff, 0, 0x41)).toMatchObject({ text: "A", diagnostics: [{ code: "utf16" }] });
});

test("bytes that are no UTF-8 are replaced, with the line of the first", () => {
  const bytes = Uint8Array.from([...utf8("one\r\ntwo\rthree "), 0xe9, 0x0a, 0x80]);
  expect(decodeText(bytes, "a.md").text).toBe("one\r\ntwo\rthree \ufffd\n\ufffd");
  expect(codes(bytes)).toEqual([["not_utf8", 3]]);
});

test("NUL characters are replaced, and offsets stay what they were", () => {
  expect(decodeText(utf8("a\n\0b\0"), "a.md").text).toBe("a\n\ufffdb\ufffd");
  expect(codes(utf8("a\n\0b"))).toEqual([["nul", 2]]);
});

test("no bytes make it throw", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      expect(typeof decodeText(bytes, "a.md").text).toBe("string");
    }),
  );
});
