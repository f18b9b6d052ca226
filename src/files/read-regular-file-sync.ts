import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { readFlags } from "./replace-file.ts";

/**
 * Reads a regular file of an open folder at once, for walks over whole trees; undefined for anything
 * else, a file past `maxBytes` included. Follows no link and waits for no pipe.
 */
export function readRegularFileSync(folder: string, name: string, maxBytes: number): Buffer | undefined {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(join(folder, name), readFlags);
    const stats = fstatSync(descriptor);
    if (!stats.isFile() || stats.size > maxBytes) return undefined;
    const bytes = Buffer.allocUnsafe(stats.size);
    let length = 0;
    while (length < bytes.length) {
      const read = readSync(descriptor, bytes, length, bytes.length - length, length);
      if (read === 0) break;
      length += read;
    }
    return bytes.subarray(0, length);
  } catch {
    return undefined;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
