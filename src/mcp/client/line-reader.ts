/** Puts chunks of bytes together to lines, none longer than a limit. */
export interface LineReader {
  /** Hands on every line that is whole now, without its end. False once a line is longer than the limit. */
  push(chunk: Buffer, onLine: (line: string) => void): boolean;
}

/** Creates a reader. Chunks are copied once, however many a line is made of. */
export function createLineReader(maxLineBytes: number): LineReader {
  let parts: Buffer[] = [];
  let held = 0;
  return {
    push(chunk, onLine) {
      let start = 0;
      for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
        const piece = chunk.subarray(start, end);
        start = end + 1;
        if (held + piece.length > maxLineBytes) return false;
        const line = parts.length === 0 ? piece : Buffer.concat([...parts, piece]);
        parts = [];
        held = 0;
        onLine(line.toString("utf8").replace(/\r$/, ""));
      }
      if (start < chunk.length) {
        parts.push(chunk.subarray(start));
        held += chunk.length - start;
      }
      return held <= maxLineBytes;
    },
  };
}
