import { randomBytes } from "node:crypto";
import { closeSync, constants, fstatSync, mkdirSync, openSync, readSync, statSync } from "node:fs";
import { access, type FileHandle, link, lstat, open, rename, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { attempt } from "../base/attempt.ts";
import { KitError } from "../base/kit-error.ts";
import type { Place } from "./find-place.ts";
import { forbidden, hasCode, ignoreMissing, invalid } from "./obstacle.ts";

export interface ReplaceFileOptions {
  /** The whole file; text is written as UTF-8. */
  readonly content: string | Uint8Array;
  /**
   * The content that the caller read; null for no file. If the file has other content now, `replaceFile` throws
   * `conflict` and writes nothing. Default: any content is replaced.
   */
  readonly expected?: Uint8Array | null;
  /** Whether to sync the file, so that it survives a loss of power. */
  readonly durable?: boolean;
  /** Whether a new file is a program. */
  readonly isExecutable?: boolean;
  readonly signal?: AbortSignal;
}

/**
 * Writes the file at a place atomically: writes a temporary file in the same folder and renames it. Keeps the mode and
 * owner of a replaced file; other hard links to it keep the old content.
 *
 * Throws `invalid_request` for a folder, `forbidden` for other entries that are not regular files.
 */
export async function replaceFile(place: Place, options: ReplaceFileOptions): Promise<void> {
  const { expected, signal } = options;
  const temporary = join(place.folder, `.kit-${randomBytes(8).toString("hex")}.tmp`);
  const existing = await describe(place);
  try {
    await fill(temporary, { ...options, existing });
    signal?.throwIfAborted();
    if (expected !== undefined) await assertUnchanged(place, expected);
    await takePlace(temporary, { place, mustBeNew: expected === null });
    if (options.durable === true) await syncFolder(place.folder);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
}

/**
 * Removes the file at a place if it still has the content `expected`; does nothing if it is gone. Throws `conflict`
 * for other content, and refuses what `replaceFile` refuses.
 */
export async function removeFile(place: Place, expected: Uint8Array): Promise<void> {
  if ((await describe(place)) === undefined) return;
  await assertUnchanged(place, expected);
  await unlink(place.entry);
  await syncFolder(place.folder);
}

interface Existing {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

async function describe(place: Place): Promise<Existing | undefined> {
  const stats = await lstat(place.entry).catch(ignoreMissing);
  if (stats === undefined) return undefined;
  if (stats.isDirectory()) throw invalid(`${place.path === "" ? "The root" : place.path} is a folder.`);
  if (!stats.isFile()) throw forbidden(`${place.path} is not a regular file.`);
  await access(place.entry, constants.W_OK);
  return { mode: stats.mode & 0o7777, uid: stats.uid, gid: stats.gid };
}

interface FillOptions extends ReplaceFileOptions {
  readonly existing: Existing | undefined;
}

async function fill(
  temporary: string,
  { content, existing, durable, isExecutable }: FillOptions,
): Promise<void> {
  const flags = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW;
  const handle = await open(temporary, flags, isExecutable === true ? 0o777 : 0o666);
  try {
    await handle.writeFile(content);
    if (existing !== undefined) await takeOver(handle, existing);
    if (durable === true) await handle.sync();
  } finally {
    await handle.close();
  }
}

async function takeOver(handle: FileHandle, existing: Existing): Promise<void> {
  const stats = await handle.stat();
  if (stats.uid !== existing.uid || stats.gid !== existing.gid) {
    // Only root may change the owner. For other users the file becomes theirs, as with any editor.
    await handle.chown(existing.uid, existing.gid).catch(() => undefined);
  }
  if ((stats.mode & 0o7777) !== existing.mode) await handle.chmod(existing.mode);
}

async function assertUnchanged(place: Place, expected: Uint8Array | null): Promise<void> {
  const current = await readRegularFile(place, Number.POSITIVE_INFINITY);
  const same =
    expected === null
      ? current === undefined
      : current !== undefined && Buffer.compare(current, expected) === 0;
  if (!same) throw changedMeanwhile(place.path);
}

async function takePlace(
  temporary: string,
  { place, mustBeNew }: { readonly place: Place; readonly mustBeNew: boolean },
): Promise<void> {
  if (!mustBeNew) return await rename(temporary, place.entry);
  // Unlike a rename, a link never replaces a file that appeared since the check.
  try {
    await link(temporary, place.entry);
  } catch (error) {
    if (hasCode(error, "EEXIST")) throw changedMeanwhile(place.path, error);
    // Some file systems do not support hard links.
    return await rename(temporary, place.entry);
  }
  await unlink(temporary);
}

/** A rename is only as durable as the folder that holds it. Not every system can sync folders. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY).catch(() => undefined);
  await handle?.sync().catch(() => undefined);
  await handle?.close();
}

const changedMeanwhile = (path: string, cause?: unknown): KitError =>
  new KitError({
    code: "conflict",
    message: `${path} was changed by another program meanwhile; nothing was written.`,
    cause,
  });

/** Opens without following a link, and without waiting for the other end of a pipe. */
const readFlags: number = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Reads the regular file at a place, up to its size at opening; `undefined` if it does not exist. Throws `invalid_request`
 * for a folder, `forbidden` for devices, pipes and the like, without waiting for them, and `payload_too_large` over
 * `maxBytes`.
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

/**
 * Creates a folder and its missing parents; throws the error of the system. Node's `recursive` loops for ever where a file system
 * answers ENOENT for a folder that cannot be created (/proc); this function ends.
 */
export function makeFolderSync(path: string): void {
  const missing: string[] = [];
  let existing = path;
  while (!makeOne(existing, { mayMiss: dirname(existing) !== existing })) {
    missing.push(existing);
    existing = dirname(existing);
  }
  for (const folder of missing.reverse()) makeOne(folder, { mayMiss: false });
}

/** Returns false if the parent folder is missing. */
function makeOne(path: string, { mayMiss }: { readonly mayMiss: boolean }): boolean {
  try {
    mkdirSync(path);
  } catch (error) {
    if (mayMiss && hasCode(error, "ENOENT")) return false;
    // Some file systems report another error for an existing folder, such as EROFS.
    if (!attempt(() => statSync(path).isDirectory(), false)) throw error;
  }
  return true;
}

/**
 * Reads a regular file of an open folder synchronously, for walks over whole trees; `undefined` for any other entry and
 * for a file over `maxBytes`. Follows no link and waits for no pipe.
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
