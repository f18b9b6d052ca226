import fc from "fast-check";
import { expect, test } from "vitest";
import { processorMs } from "../../testing/processor-time.ts";
import { createLineReader } from "./line-reader.ts";

test("lines come out whole, however their bytes come in", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: "grapheme" }).map((line) => line.replace(/[\r\n]/g, ""))),
      fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 }),
      (lines, sizes) => {
        const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
        const reader = createLineReader(1_000_000);
        const seen: string[] = [];
        for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
          const size = sizes[turn % sizes.length] ?? 1;
          expect(reader.push(bytes.subarray(at, at + size), (line) => seen.push(line))).toBe(true);
          at += size;
        }
        expect(seen).toEqual(lines);
      },
    ),
  );
});

test("a line end of Windows is no part of the line", () => {
  const seen: string[] = [];
  createLineReader(100).push(Buffer.from("a\r\nb\rc\n"), (line) => seen.push(line));
  expect(seen).toEqual(["a", "b\rc"]);
});

test("a line that is too long is refused when it is, not when it ends", () => {
  const reader = createLineReader(10);
  expect(reader.push(Buffer.from("12345"), () => undefined)).toBe(true);
  expect(reader.push(Buffer.from("67890"), () => undefined)).toBe(true);
  expect(reader.push(Buffer.from("1"), () => undefined)).toBe(false);
  expect(createLineReader(3).push(Buffer.from("1234\n"), () => undefined)).toBe(false);
});

test("ten megabytes in small chunks take no quadratic time", () => {
  const reader = createLineReader(20_000_000);
  const chunk = Buffer.alloc(1_000, "x");
  const started = processorMs();
  for (let count = 0; count < 10_000; count += 1) reader.push(chunk, () => undefined);
  let length = 0;
  reader.push(Buffer.from("\n"), (line) => {
    length = line.length;
  });
  expect(length).toBe(10_000_000);
  expect(processorMs() - started).toBeLessThan(2_000);
});
