import { readSync, writeSync } from "node:fs";
import { checkedFrameLength, decodeFrame, encodeFrame } from "../process/frame.ts";
import type { HostLink } from "./host-link.ts";

/** Reads and writes frames on standard input and output synchronously. */
export function createPipes(): HostLink {
  return {
    read() {
      const prefix = readExactly(4);
      const body = prefix && readExactly(checkedFrameLength(prefix.readUInt32BE(0)));
      return body && decodeFrame(body);
    },
    send(message, attachment) {
      const frame = encodeFrame(message, attachment);
      let sent = 0;
      while (sent < frame.length) {
        const count = retrying(() => writeSync(1, frame, sent, frame.length - sent));
        if (count === 0) process.exit(0);
        sent += count;
      }
    },
  };
}

function readExactly(length: number): Buffer | undefined {
  const buffer = Buffer.allocUnsafe(length);
  let filled = 0;
  while (filled < length) {
    const count = retrying(() => readSync(0, buffer, filled, length - filled, null));
    if (count === 0) return undefined;
    filled += count;
  }
  return buffer;
}

const pause = new Int32Array(new SharedArrayBuffer(4));

// On some systems the pipes do not block; then the thread waits a moment and tries again.
function retrying(work: () => number): number {
  for (;;) {
    try {
      return work();
    } catch (error) {
      const code = error instanceof Error && "code" in error ? error.code : undefined;
      if (code === "EOF" || code === "EPIPE") return 0;
      if (code !== "EAGAIN") throw error;
      Atomics.wait(pause, 0, 0, 1);
    }
  }
}
