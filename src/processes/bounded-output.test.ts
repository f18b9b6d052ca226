import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createBoundedOutput } from "./bounded-output.ts";

const chunks = fc.array(fc.string({ unit: "grapheme", maxLength: 40 }), { maxLength: 40 });

test("short output is kept unchanged, and of longer output the beginning and the end, without cut characters", () => {
  fc.assert(
    fc.property(chunks, fc.integer({ min: 0, max: 300 }), (texts, maxBytes) => {
      const output = createBoundedOutput(maxBytes);
      const all = texts.join("");
      const size = Buffer.byteLength(all);
      // Chunks can end anywhere, also within a character.
      const bytes = Buffer.from(all);
      for (let at = 0; at < bytes.length; at += 7) output.add(bytes.subarray(at, at + 7));
      expect(output.droppedBytes).toBe(Math.max(0, size - maxBytes));
      if (size <= maxBytes) {
        expect(output.text()).toBe(all);
        return;
      }
      const mark = `\n[… ${size - maxBytes} bytes dropped …]\n`;
      const text = output.text();
      const at = text.lastIndexOf(mark);
      const head = text.slice(0, at);
      const tail = text.slice(at + mark.length);
      expect(all.startsWith(head)).toBe(true);
      expect(all.endsWith(tail)).toBe(true);
      // At most a part of one character is missing on either side.
      expect(Buffer.byteLength(head)).toBeGreaterThan(Math.ceil(maxBytes / 2) - 4);
      expect(Buffer.byteLength(tail)).toBeGreaterThan(Math.floor(maxBytes / 2) - 4);
      expect(Buffer.byteLength(head) + Buffer.byteLength(tail)).toBeLessThanOrEqual(maxBytes);
    }),
    { numRuns: 1_000 },
  );
});

setFlagsFromString("--expose-gc");

test("endless output takes no more memory than the kept part", async () => {
  const output = createBoundedOutput(1_000);
  const chunk = Buffer.alloc(65_536, "x");
  const collectGarbage: () => void = runInNewContext("gc");
  collectGarbage();
  const before = process.memoryUsage().arrayBuffers;
  for (let count = 0; count < 5_000; count += 1) output.add(chunk);
  // Memory of collected buffers is released by another thread, a moment later.
  const held = (): number => {
    collectGarbage();
    return process.memoryUsage().arrayBuffers - before;
  };
  await expect.poll(held).toBeLessThan(1024 * 1024);
  expect(output.droppedBytes).toBe(5_000 * 65_536 - 1_000);
});
