import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { basename, extname, resolve } from "node:path";
import type { FileInput } from "../../agents/prompt/input-files.ts";
import { usageError } from "../report-error.ts";

interface FileKind {
  readonly mediaType: string;
  /** How such files begin; latin-1, at its offset. Absent where any bytes may be one. */
  readonly begins?: readonly [offset: number, text: string];
}

/** What providers take, by extension. Which of it a model takes is said when it is prompted. */
const kinds: Readonly<Record<string, FileKind>> = {
  ".pdf": { mediaType: "application/pdf", begins: [0, "%PDF-"] },
  ".png": { mediaType: "image/png", begins: [0, "\x89PNG\r\n"] },
  ".jpg": { mediaType: "image/jpeg", begins: [0, "\xff\xd8\xff"] },
  ".jpeg": { mediaType: "image/jpeg", begins: [0, "\xff\xd8\xff"] },
  ".gif": { mediaType: "image/gif", begins: [0, "GIF8"] },
  ".webp": { mediaType: "image/webp", begins: [8, "WEBP"] },
  ".wav": { mediaType: "audio/wav", begins: [8, "WAVE"] },
  ".mp3": { mediaType: "audio/mpeg" },
  ".m4a": { mediaType: "audio/mp4", begins: [4, "ftyp"] },
  ".ogg": { mediaType: "audio/ogg", begins: [0, "OggS"] },
  ".flac": { mediaType: "audio/flac", begins: [0, "fLaC"] },
  ".mp4": { mediaType: "video/mp4", begins: [4, "ftyp"] },
  ".txt": { mediaType: "text/plain" },
  ".md": { mediaType: "text/plain" },
  ".csv": { mediaType: "text/plain" },
};

/** More than providers take in one request, in bytes; all of it is held in memory. */
const maxBytes = 50 * 1_048_576;

/** Reads the files of a command line, relative to `cwd`, as a prompt takes them. Throws a usage error that names the file. */
export async function readFiles(paths: readonly string[], cwd: string): Promise<readonly FileInput[]> {
  const files: FileInput[] = [];
  let left = maxBytes;
  for (const path of paths) {
    const kind = kinds[extname(path).toLowerCase()];
    if (kind === undefined) {
      throw usageError(
        `--file: kit does not know what ${path} is.`,
        `It takes ${Object.keys(kinds).join(", ")}. Agents read other text files of the project when the prompt names them.`,
      );
    }
    const data = await readBytes(path, resolve(cwd, path), left);
    left -= data.length;
    if (!isOfKind(data, kind)) throw usageError(`--file: ${path} is no ${kind.mediaType} file.`);
    files.push({ data, media_type: kind.mediaType, filename: basename(path) });
  }
  return files;
}

async function readBytes(path: string, file: string, most: number): Promise<Uint8Array> {
  // A pipe nobody writes to would be waited for forever.
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: unknown) => {
    throw usageError(`--file: ${path} ${whyUnread(error)}.`);
  });
  try {
    const stats = await handle.stat();
    if (stats.isDirectory()) throw usageError(`--file: ${path} is a folder.`, "Name each file.");
    if (!stats.isFile()) throw usageError(`--file: ${path} is not a regular file.`);
    if (stats.size === 0) throw usageError(`--file: ${path} is empty.`);
    if (stats.size > most)
      throw usageError(`--file: with ${path} the files have more than ${maxBytes / 1_048_576} MiB.`);
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

function whyUnread(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ENOENT" || code === "ENOTDIR") return "does not exist";
  return code === "EACCES" || code === "EPERM" ? "must not be read" : "cannot be read";
}

function isOfKind(data: Uint8Array, { begins }: FileKind): boolean {
  if (begins === undefined) return true;
  const [offset, text] = begins;
  return Buffer.from(data.subarray(offset, offset + text.length)).toString("latin1") === text;
}
