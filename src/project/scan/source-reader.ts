import { hash } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readSync,
  realpathSync,
  type Stats,
  statSync,
} from "node:fs";
import { sep } from "node:path";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { Sighting } from "./tree.ts";

/** Larger files are reported in a diagnostic and not read. */
export const maxSourceBytes: number = 8 * 1024 * 1024;

/** One source file as it was read, or why it was not. */
export type SourceRead =
  | {
      readonly kind: "bytes";
      /** Valid until the next read. */
      readonly bytes: Uint8Array;
      /** SHA-256 of the bytes, base64url. */
      readonly hash: string;
      /** Taken before the bytes were read, so that the next pass reads again if the file changed during the read. */
      readonly seen: Sighting;
    }
  | { readonly kind: "problem"; readonly diagnostic: Diagnostic; readonly seen?: Sighting }
  | { readonly kind: "gone" };

export type SourceReader = (path: string) => SourceRead;

/**
 * Creates a reader of project files by project-relative path; `root` is absolute with links resolved. It follows a link to a
 * regular file inside the root. It never blocks: pipes and devices are problems.
 */
export function createSourceReader(root: string): SourceReader {
  // One buffer for all files: most are small, and a buffer each would cost more than reading them.
  let buffer = Buffer.allocUnsafe(256 * 1024);

  const readAll = (descriptor: number, size: number): Uint8Array => {
    if (buffer.length <= size) buffer = Buffer.allocUnsafe(size + 1);
    let length = 0;
    while (length < buffer.length) {
      const read = readSync(descriptor, buffer, length, buffer.length - length, null);
      if (read === 0) break;
      length += read;
    }
    return buffer.subarray(0, length);
  };

  const readRegular = (path: string, absolute: string): SourceRead => {
    const nowMs = Date.now();
    const descriptor = openSync(absolute, openFlags);
    try {
      const seen: Sighting = { stats: fstatSync(descriptor), nowMs };
      const diagnostic = refusal(path, seen.stats);
      if (diagnostic !== undefined) return { kind: "problem", diagnostic, seen };
      const bytes = readAll(descriptor, seen.stats.size);
      return { kind: "bytes", bytes, hash: hash("sha256", bytes, "base64url"), seen };
    } finally {
      closeSync(descriptor);
    }
  };

  const readLink = (path: string, absolute: string): SourceRead => {
    const target = realpathSync(absolute);
    if (target !== root && !target.startsWith(root + sep)) {
      const message = "It is a link that leads out of the project, so it is not read.";
      const seen: Sighting = { stats: statSync(absolute), nowMs: Date.now() };
      return { kind: "problem", diagnostic: unreadable({ path, code: "outside_link", message }), seen };
    }
    return readRegular(path, target);
  };

  return (path) => {
    const absolute = `${root}/${path}`;
    try {
      return readRegular(path, absolute);
    } catch (error) {
      // O_NOFOLLOW fails with these codes for a link.
      if (errorCodeOf(error) === "ELOOP" || errorCodeOf(error) === "EMLINK") {
        try {
          return readLink(path, absolute);
        } catch (linkError) {
          return { kind: "problem", diagnostic: unreadableBecause(path, errorCodeOf(linkError)) };
        }
      }
      if (errorCodeOf(error) === "ENOENT") return { kind: "gone" };
      return { kind: "problem", diagnostic: unreadableBecause(path, errorCodeOf(error)) };
    }
  };
}

const openFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

function refusal(path: string, stats: Stats): Diagnostic | undefined {
  if (!stats.isFile()) return unreadable({ path, code: "not_a_file", message: "It is not a regular file." });
  if (stats.size <= maxSourceBytes) return undefined;
  const message = `It is larger than ${maxSourceBytes / 1024 / 1024} MiB, so it is not read.`;
  return { severity: "error", rule: "limit", code: "file_too_large", message, path };
}

interface DecodedText {
  /** Without a byte order mark; NUL characters are U+FFFD, as CommonMark says. */
  readonly text: string;
  readonly diagnostics: readonly Diagnostic[];
}

const strict = new TextDecoder("utf-8", { fatal: true });
const lossy = new TextDecoder("utf-8");

/**
 * Decodes the bytes of a file: UTF-8, or UTF-16 by its byte order mark. Other bytes become U+FFFD. Returns a diagnostic for
 * `path` unless the bytes are clean UTF-8.
 */
export function decodeText(bytes: Uint8Array, path: string): DecodedText {
  const utf16 = utf16Of(bytes);
  if (utf16 !== undefined) {
    const text = new TextDecoder(utf16).decode(bytes);
    return withoutNul(text, path, [
      problem(path, {
        code: "utf16",
        message: "The file is UTF-16; save it as UTF-8, which every tool reads.",
      }),
    ]);
  }
  try {
    return withoutNul(strict.decode(bytes), path, []);
  } catch {
    const text = lossy.decode(bytes);
    const line = lineOf(text, text.indexOf("\ufffd"));
    const message = "The file is not valid UTF-8; what cannot be read is shown as \ufffd.";
    return withoutNul(text, path, [problem(path, { code: "not_utf8", message, line })]);
  }
}

function utf16Of(bytes: Uint8Array): "utf-16le" | "utf-16be" | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  return undefined;
}

function withoutNul(text: string, path: string, diagnostics: readonly Diagnostic[]): DecodedText {
  const at = text.indexOf("\0");
  if (at === -1) return { text, diagnostics };
  const message = "The file contains NUL characters; is it binary?";
  const nul = problem(path, { code: "nul", message, line: lineOf(text, at) });
  return { text: text.replaceAll("\0", "\ufffd"), diagnostics: [...diagnostics, nul] };
}

function lineOf(text: string, offset: number): number {
  const lines = text.slice(0, Math.max(0, offset)).match(/\r\n|\n|\r/g);
  return (lines?.length ?? 0) + 1;
}

function problem(
  path: string,
  { code, message, line }: { readonly code: string; readonly message: string; readonly line?: number },
): Diagnostic {
  const diagnostic: Diagnostic = { severity: "warning", rule: "encoding", code, message, path };
  return line === undefined ? diagnostic : { ...diagnostic, line };
}

interface Problem {
  readonly path: string;
  /** Stable name of the cause. */
  readonly code: string;
  readonly message: string;
}

/** The diagnostic of an existing file or folder that cannot be read. */
export function unreadable({ path, code, message }: Problem): Diagnostic {
  return { severity: "error", rule: "unreadable-file", code, message, path };
}

/** The same from the code of a file system error. The message holds no absolute path. */
export function unreadableBecause(path: string, errorCode: string): Diagnostic {
  const cause = causes[errorCode];
  if (cause !== undefined) return unreadable({ path, ...cause });
  return unreadable({ path, code: "read_failed", message: `It cannot be read (${errorCode}).` });
}

const causes: Readonly<Record<string, { readonly code: string; readonly message: string }>> = {
  EACCES: { code: "no_permission", message: "There is no permission to read it." },
  EPERM: { code: "no_permission", message: "There is no permission to read it." },
  ELOOP: { code: "link_loop", message: "It is a link to itself." },
  ENOENT: { code: "dangling_link", message: "It is a link to something that does not exist." },
  ENAMETOOLONG: { code: "name_too_long", message: "Its path is longer than the system can open." },
  ENXIO: { code: "not_a_file", message: "It is not a regular file." },
};

/** The code of an error of the file system; "unknown" for anything else. */
export function errorCodeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "unknown";
}
