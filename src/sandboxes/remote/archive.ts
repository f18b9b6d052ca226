import { promisify } from "node:util";
import { gunzip } from "node:zlib";

export interface ArchivedFile {
  readonly path: string;
  readonly content: Buffer;
  readonly executable?: boolean;
}

const block = 512;

/** The regular files of a GNU or POSIX tar archive; links, folders and everything else are passed over. */
export function readArchive(bytes: Buffer): readonly ArchivedFile[] {
  const files: ArchivedFile[] = [];
  let longName: string | undefined;
  for (let at = 0; at + block <= bytes.length; ) {
    const head = bytes.subarray(at, at + block);
    if (head.every((byte) => byte === 0)) break;
    const size = Number.parseInt(head.toString("latin1", 124, 136), 8) || 0;
    const content = bytes.subarray(at + block, at + block + size);
    at += block + Math.ceil(size / block) * block;
    const type = String.fromCharCode(head[156] ?? 0);
    if (type === "L") {
      longName = textOf(content);
      continue;
    }
    if ((type === "0" || type === "\0") && content.length === size) {
      const mode = Number.parseInt(head.toString("latin1", 100, 108), 8);
      const path = (longName ?? textOf(head.subarray(0, 100))).replace(/^(?:\.\/+)+/, "");
      files.push({ path, content, executable: (mode & 0o100) !== 0 });
    }
    longName = undefined;
  }
  return files;
}

const textOf = (bytes: Buffer): string => {
  const end = bytes.indexOf(0);
  return bytes.toString("utf8", 0, end === -1 ? bytes.length : end);
};

const unzip = promisify(gunzip);

/** What a script has packed into a line. */
export async function unpack(line: string | undefined): Promise<Buffer> {
  return line === undefined || line === "" ? Buffer.alloc(0) : await unzip(Buffer.from(line, "base64"));
}
