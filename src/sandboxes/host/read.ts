import type { Dirent, Stats } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { KitError } from "../../base/kit-error.ts";
import { readRegularFile } from "../../files/read-regular-file.ts";
import type { DirectoryEntry, FileStat } from "../contract.ts";
import { notFound, withPlace } from "./with-place.ts";
import type { View } from "./workspace.ts";

/** Throws `payload_too_large` for a file past `maxBytes`. */
export function readBytes(view: View, path: string, maxBytes: number): Promise<Uint8Array> {
  return withPlace(view, path, {
    async work(place) {
      const bytes = await readRegularFile(place, maxBytes);
      if (bytes === undefined) throw notFound(place.path);
      return bytes;
    },
  });
}

/** The text of a file as it is, byte order mark included; what is not UTF-8 becomes U+FFFD. */
export async function readText(view: View, path: string, maxBytes: number): Promise<string> {
  const { buffer, byteOffset, byteLength } = await readBytes(view, path, maxBytes);
  return Buffer.from(buffer, byteOffset, byteLength).toString("utf8");
}

export function stat(view: View, path: string): Promise<FileStat> {
  return withPlace(view, path, {
    async work(place) {
      const stats = await lstat(place.entry);
      return { kind: kindOf(stats), size: stats.size, modified_at: stats.mtime.toISOString() };
    },
  });
}

export async function exists(view: View, path: string): Promise<boolean> {
  try {
    await stat(view, path);
    return true;
  } catch (error) {
    if (error instanceof KitError && error.code === "not_found") return false;
    throw error;
  }
}

/** The entries of a folder by name, in the order of code units. */
export function list(view: View, path: string): Promise<readonly DirectoryEntry[]> {
  return withPlace(view, path, {
    end: "folder",
    async work(place) {
      const entries = await readdir(place.folder, { withFileTypes: true });
      return entries
        .map((entry) => ({ name: entry.name, kind: kindOf(entry) }))
        .sort((one, other) => (one.name < other.name ? -1 : 1));
    },
  });
}

function kindOf(entry: Stats | Dirent): FileStat["kind"] {
  if (entry.isFile()) return "file";
  if (entry.isDirectory()) return "directory";
  return entry.isSymbolicLink() ? "link" : "other";
}
