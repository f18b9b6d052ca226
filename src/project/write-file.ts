import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { access, type FileHandle, link, lstat, open, rename, unlink } from "node:fs/promises";
import { join } from "node:path";
import { KitError } from "../base/kit-error.ts";
import { findPlace, type Place, toKitError } from "./inside-root.ts";

/** Where writes go: a `Project` is one. */
export interface WritableRoot {
  /** Absolute, with links resolved. */
  readonly root: string;
  readonly readOnly: boolean;
}

export interface ReadInsideOptions {
  /** POSIX, relative to the root. */
  readonly path: string;
  /** A larger file throws `payload_too_large`; default 16 MiB. */
  readonly maxBytes?: number;
}

export interface WriteInsideOptions {
  /** POSIX, relative to the root; missing folders are created. */
  readonly path: string;
  /** The whole file; text is written as UTF-8. */
  readonly content: string | Uint8Array;
  /**
   * What the file held when the content was made; null for no file. Other content by now throws
   * `conflict` and nothing is written. Without it, whatever is there is replaced.
   */
  readonly expected?: Uint8Array | null;
  readonly signal?: AbortSignal;
}

/**
 * Reads a regular file of the project, or undefined when there is none. Links are followed inside
 * the project only; devices, pipes and the like throw `forbidden` without being waited for.
 */
export async function readFileInside(
  root: string,
  options: ReadInsideOptions,
): Promise<Uint8Array | undefined> {
  return (await readPlacedFile(root, options))?.bytes;
}

/** The same, with the project-relative path of the file after links were followed. */
export async function readPlacedFile(
  root: string,
  options: ReadInsideOptions,
): Promise<{ readonly bytes: Uint8Array; readonly path: string } | undefined> {
  const place = await findPlace({ root, path: options.path });
  if (place === undefined) return undefined;
  try {
    const read = await readPlace(place, options.maxBytes ?? 16 * 1024 * 1024);
    return read && { bytes: read.bytes, path: place.path };
  } catch (error) {
    throw error instanceof KitError ? error : toKitError(error, options.path);
  } finally {
    await place.close();
  }
}

/**
 * Writes one file of the project, whole or not at all: into a temporary file beside it, which then
 * takes its place. Keeps the mode and owner of a file that was there, and returns its
 * project-relative path, with links followed.
 *
 * Throws `forbidden` in a read-only project, for a path that leads out of it and for anything but
 * a regular file, and `conflict` as `expected` says.
 */
export async function writeFileInside(target: WritableRoot, options: WriteInsideOptions): Promise<string> {
  const { path, content, expected, signal } = options;
  assertWritable(target);
  signal?.throwIfAborted();
  const place = await findPlace({ root: target.root, path, createFolders: true });
  if (place === undefined) throw toKitError(undefined, path);
  const temporary = join(place.folder, `.kit-${randomBytes(8).toString("hex")}.tmp`);
  try {
    const existing = await describe(place);
    await fill(temporary, { content, existing });
    signal?.throwIfAborted();
    if (expected !== undefined) await assertUnchanged(place, expected);
    await takePlace(temporary, { place, mustBeNew: expected === null });
    await syncFolder(place.folder);
    return place.path;
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    if (error instanceof KitError || error === signal?.reason) throw error;
    throw toKitError(error, path);
  } finally {
    await place.close();
  }
}

/**
 * Removes one regular file of the project; a link loses the file that it leads to. Nothing to remove is no error.
 *
 * Throws `conflict` when the file is not what was expected, else as `writeFileInside` does.
 */
export async function removeFileInside(
  target: WritableRoot,
  options: { readonly path: string; readonly expected: Uint8Array },
): Promise<void> {
  assertWritable(target);
  const place = await findPlace({ root: target.root, path: options.path });
  if (place === undefined) return;
  try {
    if ((await describe(place)) === undefined) return;
    await assertUnchanged(place, options.expected);
    await unlink(join(place.folder, place.name));
    await syncFolder(place.folder);
  } catch (error) {
    throw error instanceof KitError ? error : toKitError(error, options.path);
  } finally {
    await place.close();
  }
}

/** Throws `forbidden` in a read-only project. */
export function assertWritable(target: WritableRoot): void {
  if (!target.readOnly) return;
  throw new KitError({
    code: "forbidden",
    message: "The project is open read-only, so nothing is written.",
    hint: "Start kit without read_only to let it write.",
  });
}

interface Existing {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

async function describe(place: Place): Promise<Existing | undefined> {
  const file = join(place.folder, place.name);
  const stats = await lstat(file).catch(ignoreMissing);
  if (stats === undefined) return undefined;
  if (!stats.isFile()) throw notRegular(place.path);
  await access(file, constants.W_OK);
  return { mode: stats.mode & 0o7777, uid: stats.uid, gid: stats.gid };
}

async function fill(
  temporary: string,
  { content, existing }: { readonly content: string | Uint8Array; readonly existing: Existing | undefined },
): Promise<void> {
  const flags = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW;
  const handle = await open(temporary, flags, 0o666);
  try {
    await handle.writeFile(content);
    if (existing !== undefined) await takeOver(handle, existing);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function takeOver(handle: FileHandle, existing: Existing): Promise<void> {
  const stats = await handle.stat();
  if (stats.uid !== existing.uid || stats.gid !== existing.gid) {
    // Only root may give files away; for others the file becomes theirs, as with any editor.
    await handle.chown(existing.uid, existing.gid).catch(() => undefined);
  }
  await handle.chmod(existing.mode);
}

async function assertUnchanged(place: Place, expected: Uint8Array | null): Promise<void> {
  const current = await readPlace(place, Number.POSITIVE_INFINITY);
  const same =
    expected === null ? current === undefined : current !== undefined && equal(current.bytes, expected);
  if (!same) throw changedMeanwhile(place.path);
}

async function takePlace(
  temporary: string,
  { place, mustBeNew }: { readonly place: Place; readonly mustBeNew: boolean },
): Promise<void> {
  const file = join(place.folder, place.name);
  if (!mustBeNew) return await rename(temporary, file);
  // Unlike a rename, a link never replaces a file that appeared since it was looked for.
  try {
    await link(temporary, file);
  } catch (error) {
    if (hasCode(error, "EEXIST")) throw changedMeanwhile(place.path, error);
    // Some file systems know no hard links.
    return await rename(temporary, file);
  }
  await unlink(temporary);
}

async function readPlace(
  place: Place,
  maxBytes: number,
): Promise<{ readonly bytes: Uint8Array } | undefined> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(join(place.folder, place.name), flags).catch(ignoreMissing);
  if (handle === undefined) return undefined;
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw notRegular(place.path);
    if (stats.size > maxBytes) {
      throw new KitError({ code: "payload_too_large", message: `${place.path} is too large.` });
    }
    return { bytes: await handle.readFile() };
  } finally {
    await handle.close();
  }
}

/** A rename is only as durable as the folder that holds it. Not every system can sync folders. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY).catch(() => undefined);
  await handle?.sync().catch(() => undefined);
  await handle?.close();
}

const equal = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;
const hasCode = (error: unknown, code: string): boolean =>
  error instanceof Error && "code" in error && error.code === code;

function ignoreMissing(error: unknown): undefined {
  if (!hasCode(error, "ENOENT")) throw error;
}

const notRegular = (path: string): KitError =>
  new KitError({ code: "forbidden", message: `${path} is not a regular file.` });

const changedMeanwhile = (path: string, cause?: unknown): KitError =>
  new KitError({
    code: "conflict",
    message: `${path} was changed by somebody else meanwhile; nothing was written.`,
    cause,
  });
