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
import type { Sighting } from "./folder.ts";
import { errorCodeOf, unreadable, unreadableBecause } from "./problems.ts";

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
      /** Taken before the bytes were read, so that a change meanwhile makes the next pass read again. */
      readonly seen: Sighting;
    }
  | { readonly kind: "problem"; readonly diagnostic: Diagnostic; readonly seen?: Sighting }
  | { readonly kind: "gone" };

export type SourceReader = (path: string) => SourceRead;

/**
 * Creates a reader of project files, given by project-relative path; `root` is absolute with links
 * resolved. A link is read when it leads to a regular file inside the root. It never waits:
 * pipes, devices and the like are problems.
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
      // The error of O_NOFOLLOW for a link.
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
