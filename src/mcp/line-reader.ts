export interface LineListener {
  /** A complete line without its end (`\n` or `\r\n`). The buffer is valid during the call only. */
  onLine(line: Buffer): void;
  /** A line exceeds the limit. It is dropped, and the reader continues with the next line. */
  onTooLong(): void;
}

const newline = 10;
const carriageReturn = 13;
const noBytes = Buffer.alloc(0);

/** Joins chunks of bytes to lines, in linear time for any number of chunks. */
export class LineReader {
  readonly #maxBytes: number;
  readonly #listener: LineListener;
  /** The first `#length` bytes hold the beginning of an incomplete line. */
  #partialLine = noBytes;
  #length = 0;
  #isSkipping = false;

  constructor(maxBytes: number, listener: LineListener) {
    this.#maxBytes = maxBytes;
    this.#listener = listener;
  }

  push(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      this.#endLine(chunk.subarray(start, end));
      start = end + 1;
    }
    if (start < chunk.length) this.#hold(chunk.subarray(start));
  }

  #endLine(rest: Buffer): void {
    let line = rest;
    if (this.#length > 0) {
      this.#hold(rest);
      line = this.#partialLine.subarray(0, this.#length);
    } else if (!this.#isSkipping && rest.length > this.#maxBytes) this.#skip();
    const isComplete = !this.#isSkipping;
    this.#length = 0;
    this.#isSkipping = false;
    // Long lines are rare, so release their memory.
    if (this.#partialLine.length > 1_048_576) this.#partialLine = noBytes;
    if (isComplete) this.#listener.onLine(line.at(-1) === carriageReturn ? line.subarray(0, -1) : line);
  }

  #hold(piece: Buffer): void {
    if (this.#isSkipping) return;
    const length = this.#length + piece.length;
    if (length > this.#maxBytes) {
      this.#skip();
      return;
    }
    if (length > this.#partialLine.length) {
      // Double the size, so that a line of a million chunks is not copied a million times.
      const larger = Buffer.allocUnsafe(Math.min(this.#maxBytes, Math.max(65_536, 2 * length)));
      this.#partialLine.copy(larger, 0, 0, this.#length);
      this.#partialLine = larger;
    }
    piece.copy(this.#partialLine, this.#length);
    this.#length = length;
  }

  #skip(): void {
    this.#isSkipping = true;
    this.#length = 0;
    this.#partialLine = noBytes;
    this.#listener.onTooLong();
  }
}
