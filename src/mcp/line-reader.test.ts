import fc from "fast-check";
import { expect, test } from "vitest";
import { processorMs } from "../testing/processor-time.ts";
import { LineReader } from "./line-reader.ts";

function readerOf(maxBytes: number): { readonly reader: LineReader; readonly seen: string[] } {
  const seen: string[] = [];
  const reader = new LineReader(maxBytes, {
    onLine: (line) => seen.push(line.toString("utf8")),
    onTooLong: () => seen.push("(too long)"),
  });
  return { reader, seen };
}

test("lines are complete or too long, however their bytes arrive", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: "grapheme" }).map((line) => line.replace(/[\r\n]/g, ""))),
      fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 }),
      fc.integer({ min: 1, max: 40 }),
      (lines, sizes, maxBytes) => {
        const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
        const { reader, seen } = readerOf(maxBytes);
        for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
          const size = sizes[turn % sizes.length] ?? 1;
          reader.push(bytes.subarray(at, at + size));
          at += size;
        }
        expect(seen).toEqual(lines.map((line) => (Buffer.byteLength(line) > maxBytes ? "(too long)" : line)));
      },
    ),
  );
});

test("a line end of Windows is not part of the line", () => {
  const { reader, seen } = readerOf(100);
  reader.push(Buffer.from("a\r\nb\rc\n\r\n\n"));
  expect(seen).toEqual(["a", "b\rc", "", ""]);
});

test("a line is reported as too long before it ends, and the next line is read", () => {
  const { reader, seen } = readerOf(10);
  reader.push(Buffer.from("12345"));
  reader.push(Buffer.from("67890"));
  expect(seen).toEqual([]);
  reader.push(Buffer.from("1"));
  expect(seen).toEqual(["(too long)"]);
  reader.push(Buffer.from("234567890123"));
  reader.push(Buffer.from("4\nshort\n"));
  expect(seen).toEqual(["(too long)", "short"]);
});

test("two megabytes in chunks of a byte take linear time and little memory", () => {
  const { reader, seen } = readerOf(2_000_000);
  const chunk = Buffer.from("x");
  const before = process.memoryUsage();
  const started = processorMs();
  for (let count = 0; count < 2_000_000; count += 1) reader.push(chunk);
  const after = process.memoryUsage();
  reader.push(Buffer.from("\n"));
  expect(seen[0]?.length).toBe(2_000_000);
  expect(processorMs() - started).toBeLessThan(3_000);
  expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(16_000_000);
});
