import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { KitError } from "../base/kit-error.ts";
import { forbidden, ignoreMissing, invalid } from "./file-error.ts";
import type { Place } from "./find-place.ts";

/** Opens without following a link, and without waiting for the other end of a pipe. */
export const readFlags: number = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Reads the regular file at a place, as long as it was when it was opened; undefined when there is
 * none. Throws `invalid_request` for a folder, `forbidden` for devices, pipes and the like, for which it
 * does not wait, and `payload_too_large` past `maxBytes`.
 */
export async function readRegularFile(place: Place, maxBytes: number): Promise<Uint8Array | undefined> {
  const handle = await open(place.entry, readFlags).catch(ignoreMissing);
  if (handle === undefined) return undefined;
  try {
    const stats = await handle.stat();
    if (stats.isDirectory()) throw invalid(`${place.path === "" ? "The root" : place.path} is a folder.`);
    if (!stats.isFile()) throw forbidden(`${place.path} is not a regular file.`);
    if (stats.size > maxBytes) {
      throw new KitError({ code: "payload_too_large", message: `${place.path} is too large.` });
    }
    const bytes = Buffer.allocUnsafeSlow(stats.size);
    let length = 0;
    while (length < bytes.length) {
      const { bytesRead } = await handle.read(bytes, length, bytes.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return bytes.subarray(0, length);
  } finally {
    await handle.close();
  }
}
