import fc from "fast-check";
import { expect, test } from "vitest";
import { processorMs } from "../../testing/processor-time.ts";
import { createFrameReader, encodeFrame, maxFrameBytes } from "./frame.ts";

const frames = fc.array(fc.tuple(fc.object(), fc.uint8Array({ maxLength: 200 })), { maxLength: 8 });

test("frames are read as they were written, however the stream is split", () => {
  fc.assert(
    fc.property(frames, fc.array(fc.nat(60), { minLength: 1 }), (given, cuts) => {
      const stream = Buffer.concat(given.map(([header, attachment]) => encodeFrame(header, attachment)));
      const reader = createFrameReader();
      const read = [];
      for (let at = 0, turn = 0; at < stream.length; turn += 1) {
        const size = (cuts[turn % cuts.length] ?? 0) + 1;
        read.push(...reader.push(stream.subarray(at, at + size)));
        at += size;
      }
      expect(read.map(({ header, attachment }) => [header, new Uint8Array(attachment)])).toEqual(
        given.map(([header, attachment]) => [JSON.parse(JSON.stringify(header)), attachment]),
      );
    }),
  );
});

test("a frame that is too long, or longer inside than outside, is refused", () => {
  const prefix = (...lengths: readonly number[]): Buffer => {
    const bytes = Buffer.alloc(4 * lengths.length);
    lengths.forEach((length, index) => {
      bytes.writeUInt32BE(length, index * 4);
    });
    return bytes;
  };
  expect(() => createFrameReader().push(prefix(maxFrameBytes + 1))).toThrow("impossible length");
  expect(() => createFrameReader().push(prefix(0))).toThrow("impossible length");
  expect(() => createFrameReader().push(prefix(4, 100))).toThrow("longer than the frame");
});

test("a frame in many chunks is collected in linear time", () => {
  const stream = encodeFrame({}, new Uint8Array(32 * 1024 * 1024));
  const reader = createFrameReader();
  const started = processorMs();
  let count = 0;
  for (let at = 0; at < stream.length; at += 4_096)
    count += reader.push(stream.subarray(at, at + 4_096)).length;
  expect(count).toBe(1);
  expect(processorMs() - started).toBeLessThan(2_000);
});
