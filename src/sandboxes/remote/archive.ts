import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";

export interface ArchivedFile {
  readonly path: string;
  readonly content: Buffer;
  readonly executable?: boolean;
  /** For a link, `content` is its target. */
  readonly isLink?: boolean;
}

const blockBytes = 512;

/** Reads the regular files of a GNU or POSIX tar archive, and with `links` its links; skips other entries. */
export function readArchive(
  bytes: Buffer,
  { links = false }: { readonly links?: boolean } = {},
): readonly ArchivedFile[] {
  const files: ArchivedFile[] = [];
  let longName: string | undefined;
  let longTarget: string | undefined;
  for (let at = 0; at + blockBytes <= bytes.length; ) {
    const head = bytes.subarray(at, at + blockBytes);
    if (head.every((byte) => byte === 0)) break;
    const size = Number.parseInt(head.toString("latin1", 124, 136), 8) || 0;
    const content = bytes.subarray(at + blockBytes, at + blockBytes + size);
    at += blockBytes + Math.ceil(size / blockBytes) * blockBytes;
    const type = String.fromCharCode(head[156] ?? 0);
    if (type === "L") {
      longName = textOf(content);
      continue;
    }
    if (type === "K") {
      longTarget = textOf(content);
      continue;
    }
    const path = (longName ?? textOf(head.subarray(0, 100))).replace(/^(?:\.\/+)+/, "");
    if (type === "2" && links) {
      const target = longTarget ?? textOf(head.subarray(157, 257));
      files.push({ path, content: Buffer.from(target), isLink: true });
    }
    if ((type === "0" || type === "\0") && content.length === size) {
      const mode = Number.parseInt(head.toString("latin1", 100, 108), 8);
      files.push({ path, content, executable: (mode & 0o100) !== 0 });
    }
    longName = undefined;
    longTarget = undefined;
  }
  return files;
}

const textOf = (bytes: Buffer): string => {
  const end = bytes.indexOf(0);
  return bytes.toString("utf8", 0, end === -1 ? bytes.length : end);
};

/** Writes an archive that GNU tar can read. */
export function writeArchive(files: readonly ArchivedFile[]): Buffer {
  const parts: Buffer[] = [];
  const add = (head: Buffer, content: Buffer): void => {
    parts.push(head, content, Buffer.alloc((blockBytes - (content.length % blockBytes)) % blockBytes));
  };
  const addLong = (name: Buffer, type: "K" | "L"): void => {
    if (name.length < 100) return;
    const long = Buffer.concat([name, Buffer.alloc(1)]);
    add(headOf({ name: Buffer.from("././@LongLink"), size: long.length, mode: 0, type }), long);
  };
  for (const { path, content, executable = false, isLink = false } of files) {
    const name = Buffer.from(`./${path}`);
    if (isLink) {
      addLong(content, "K");
      addLong(name, "L");
      add(headOf({ name, size: 0, mode: 0o777, type: "2", target: content }), Buffer.alloc(0));
      continue;
    }
    addLong(name, "L");
    add(
      headOf({
        name: name.subarray(0, 99),
        size: content.length,
        mode: executable ? 0o755 : 0o644,
        type: "0",
      }),
      content,
    );
  }
  return Buffer.concat([...parts, Buffer.alloc(blockBytes * 2)]);
}

interface Head {
  readonly name: Buffer;
  readonly size: number;
  readonly mode: number;
  readonly type: string;
  /** The target of a link. */
  readonly target?: Buffer;
}

function headOf({ name, size, mode, type, target }: Head): Buffer {
  const head = Buffer.alloc(blockBytes);
  name.copy(head, 0, 0, 99);
  target?.copy(head, 157, 0, 99);
  const octal = (value: number, at: number, length: number): void => {
    head.write(value.toString(8).padStart(length - 1, "0"), at, "latin1");
  };
  octal(mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(Math.floor(Date.now() / 1000), 136, 12);
  head.fill(" ", 148, 156);
  head.write(type, 156, "latin1");
  head.write("ustar  \0", 257, "latin1");
  octal(
    head.reduce((sum, byte) => sum + byte, 0),
    148,
    7,
  );
  head[154] = 0;
  return head;
}

const unzip = promisify(gunzip);

/** Decodes a line of a script's output: base64 of gzip. */
export async function unpack(line: string | undefined): Promise<Buffer> {
  return line === undefined || line === "" ? Buffer.alloc(0) : await unzip(Buffer.from(line, "base64"));
}

const zip = promisify(gzip);

/** Encodes bytes for a script: gzip in base64. */
export async function pack(bytes: Buffer): Promise<string> {
  return (await zip(bytes)).toString("base64");
}
