/**
 * A message on a pipe: four bytes for the length of what follows, four for the length of the header, the
 * header as JSON, and bytes that belong to it. Lengths are big-endian.
 */
export interface Frame {
  readonly header: unknown;
  readonly attachment: Uint8Array;
}

/**
 * A longer frame is an error: whoever sends it is not kit. The largest value of the host takes 100 MB as JSON, where
 * each of its characters is escaped; the largest answer, a result of that kind and 48 MiB of variables, as much.
 */
export const maxFrameBytes: number = 256 * 1024 * 1024;

const prefixBytes = 8;
const nothing = new Uint8Array(0);

export function encodeFrame(header: object, attachment: Uint8Array = nothing): Buffer {
  const json = Buffer.from(JSON.stringify(header));
  const prefix = Buffer.alloc(prefixBytes);
  prefix.writeUInt32BE(4 + json.length + attachment.length, 0);
  prefix.writeUInt32BE(json.length, 4);
  return Buffer.concat([prefix, json, attachment]);
}

/** Reads what follows the first four bytes. Throws for a body that is none. */
export function decodeFrame(body: Buffer): Frame {
  const end = 4 + (body.length < 4 ? Number.NaN : body.readUInt32BE(0));
  if (!(end <= body.length)) throw new RangeError("A frame's header is longer than the frame.");
  return { header: JSON.parse(body.toString("utf8", 4, end)), attachment: body.subarray(end) };
}

/** Checks the length that a frame announces. */
export function checkedFrameLength(length: number): number {
  if (length < 4 || length > maxFrameBytes) throw new RangeError("A frame has an impossible length.");
  return length;
}

/** Collects frames from the chunks of a stream. `push` throws for what cannot be a frame. */
export function createFrameReader(): { push(chunk: Buffer): readonly Frame[] } {
  let chunks: Buffer[] = [];
  let size = 0;
  // Bytes that must be there before anything can be read; joining earlier would be quadratic.
  let expectedBytes = 4;
  return {
    push(chunk) {
      chunks.push(chunk);
      size += chunk.length;
      const frames: Frame[] = [];
      while (size >= expectedBytes) {
        const joined = chunks.length === 1 ? (chunks[0] ?? chunk) : Buffer.concat(chunks);
        const end = 4 + checkedFrameLength(joined.readUInt32BE(0));
        if (size < end) {
          chunks = [joined];
          expectedBytes = end;
          break;
        }
        frames.push(decodeFrame(joined.subarray(4, end)));
        chunks = [joined.subarray(end)];
        size -= end;
        expectedBytes = 4;
      }
      return frames;
    },
  };
}
