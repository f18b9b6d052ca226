/** The beginning and the end of a process's output. */
export interface BoundedOutput {
  add(chunk: Buffer): void;
  /** The text; if the middle was dropped, a line tells how much. */
  text(): string;
  readonly droppedBytes: number;
}

/** Keeps `maxBytes`: half for the beginning and half for the end, where errors are usually explained. */
export function createBoundedOutput(maxBytes: number): BoundedOutput {
  const maxHead = Math.ceil(maxBytes / 2);
  const maxTail = maxBytes - maxHead;
  const head: Buffer[] = [];
  let tail: Buffer[] = [];
  let headBytes = 0;
  let tailBytes = 0;
  let total = 0;

  const keepTail = (chunk: Buffer): void => {
    tail.push(chunk);
    tailBytes += chunk.length;
    // Join rarely, so that many small chunks do not each cost a copy of the whole tail.
    if (tailBytes < maxTail * 2 + 65_536) return;
    const kept = Buffer.concat(tail);
    tail = [maxTail === 0 ? Buffer.alloc(0) : Buffer.from(kept.subarray(-maxTail))];
    tailBytes = maxTail;
  };
  return {
    add(chunk) {
      total += chunk.length;
      const fits = chunk.subarray(0, maxHead - headBytes);
      if (fits.length > 0) head.push(fits);
      headBytes += fits.length;
      if (chunk.length > fits.length) keepTail(chunk.subarray(fits.length));
    },
    get droppedBytes() {
      return Math.max(0, total - maxBytes);
    },
    text() {
      if (total <= maxBytes) return Buffer.concat([...head, ...tail]).toString("utf8");
      const end = Buffer.concat(tail);
      const lastBytes = end.subarray(end.length - Math.min(maxTail, end.length));
      return `${withoutCutEnd(Buffer.concat(head))}\n[… ${total - maxBytes} bytes dropped …]\n${withoutCutStart(lastBytes)}`;
    },
  };
}

// A multi-byte character may be cut in two.
function withoutCutEnd(bytes: Buffer): string {
  let end = bytes.length;
  while (end > 0 && bytes.length - end < 3 && isContinuation(bytes[end - 1])) end -= 1;
  const lead = bytes[end - 1] ?? 0;
  const size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  const isCut = size > bytes.length - end + 1;
  return bytes.toString("utf8", 0, isCut ? end - 1 : bytes.length);
}

function withoutCutStart(bytes: Buffer): string {
  let start = 0;
  while (start < 3 && isContinuation(bytes[start])) start += 1;
  return bytes.toString("utf8", start);
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
