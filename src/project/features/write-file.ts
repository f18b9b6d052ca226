import { createHash } from "node:crypto";
import { KitError } from "../../base/kit-error.ts";
import { findPlace, type Place, resolveInside } from "../../files/find-place.ts";
import { forbidden, invalid, toFileError } from "../../files/obstacle.ts";
import { readRegularFile, removeFile, replaceFile } from "../../files/replace-file.ts";
import type { FileChange, SyncEntry } from "../../protocol/sync.ts";

/** The root that writes go to: a `Project`, for example. */
export interface WritableRoot {
  /** Absolute, with links resolved. */
  readonly root: string;
  readonly readOnly: boolean;
}

interface ReadInsideOptions {
  /** POSIX, relative to the root. */
  readonly path: string;
  /** A larger file throws `payload_too_large`; default 16 MiB. */
  readonly maxBytes?: number;
}

interface WriteInsideOptions {
  /** POSIX, relative to the root; missing folders are created. */
  readonly path: string;
  /** The whole file; text is written as UTF-8. */
  readonly content: string | Uint8Array;
  /**
   * The content from which the caller made the new one; null for no file. Where the file has other content now, the write throws
   * `conflict` and changes nothing. Default: any content is replaced.
   */
  readonly expected?: Uint8Array | null;
  /** Whether a new file is a program. */
  readonly isExecutable?: boolean;
  readonly signal?: AbortSignal;
}

/**
 * Reads a regular file of the project; `undefined` if it does not exist. Links are followed inside the project only; devices,
 * pipes and the like throw `forbidden` at once.
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
  { path, maxBytes = 16 * 1024 * 1024 }: ReadInsideOptions,
): Promise<{ readonly bytes: Uint8Array; readonly path: string } | undefined> {
  assertFilePath(path);
  const place = await findPlace({ root, path });
  if (place === undefined) return undefined;
  try {
    const bytes = await readRegularFile(place, maxBytes);
    return bytes && { bytes, path: place.path };
  } catch (error) {
    throw toFileError(error, path);
  } finally {
    await place.close();
  }
}

/**
 * Writes one file of the project atomically: into a temporary file in the same folder, which is then renamed. Keeps the mode and
 * owner of an existing file, and returns its project-relative path, with links followed.
 *
 * Throws `forbidden` in a read-only project, for a path that leads out of it or into a `.git` or `.kit`, and for anything but a
 * regular file; throws `conflict` if the file is not what `expected` describes.
 */
export async function writeFileInside(target: WritableRoot, options: WriteInsideOptions): Promise<string> {
  const { path, signal } = options;
  assertWritable(target);
  assertFilePath(path);
  signal?.throwIfAborted();
  assertNotInternal(path, await resolveInside({ root: target.root, path }));
  const place = await findWritable(path, findPlace({ root: target.root, path, createFolders: true }));
  if (place === undefined) throw toFileError(undefined, path);
  try {
    await replaceFile(place, { ...options, durable: true });
    return place.path;
  } catch (error) {
    if (error === signal?.reason) throw error;
    throw toFileError(error, path);
  } finally {
    await place.close();
  }
}

/**
 * Removes one file of the project that still has the expected content. Does nothing for a missing file; throws `conflict` for
 * other content, and refuses the paths that `writeFileInside` refuses.
 */
export async function removeFileInside(
  target: WritableRoot,
  { path, expected }: { readonly path: string; readonly expected: Uint8Array },
): Promise<void> {
  assertWritable(target);
  assertFilePath(path);
  const place = await findWritable(path, findPlace({ root: target.root, path }));
  if (place === undefined) return;
  try {
    await removeFile(place, expected);
  } catch (error) {
    throw toFileError(error, path);
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

/** Throws `forbidden` for a path whose real path is in a folder of Git or of kit: what is there runs, or is kit's own memory. */
export function assertNotInternal(path: string, real: string): void {
  if (!real.split("/").some((name) => /^\.(?:git|kit)$/i.test(name))) return;
  const link = real === path ? "" : ` is a link to ${real}, which`;
  throw forbidden(
    `${path}${link} belongs to Git or to kit itself, and is not written as a file of the project.`,
  );
}

/** A folder can become a link after its path was checked, so the open place decides. */
async function findWritable(path: string, finding: Promise<Place | undefined>): Promise<Place | undefined> {
  const place = await finding;
  try {
    assertNotInternal(path, place?.path ?? "");
    return place;
  } catch (error) {
    await place?.close();
    throw error;
  }
}

function assertFilePath(path: string): void {
  if (path === "" || path.endsWith("/")) throw invalid("A project path names a file.");
}

/** A change as its preview shows it. */
type ShownChange = Omit<FileChange, "digest"> & { readonly losses?: SyncEntry["losses"] | undefined };

/**
 * The digest of what a preview shows of a file: its present text, its future text, and what is lost. Ignores the text of an
 * unchanged file, because kit writes nothing to it.
 */
export function digestOfChange({ path, action, before, after, losses = [] }: ShownChange): string {
  const texts = action === "unchanged" ? [] : [before ?? null, after ?? null, losses];
  return createHash("sha256")
    .update(JSON.stringify([path, action, ...texts]))
    .digest("hex")
    .slice(0, 32);
}

/** Throws `conflict`, with the files as `meta.files`, if a change differs from the preview. */
export function assertAsPreviewed(
  changes: readonly FileChange[],
  expected: readonly Pick<FileChange, "path" | "digest">[],
): void {
  const previewed = new Map(expected.map(({ path, digest }) => [path, digest]));
  const planned = new Map(changes.map(({ path, digest }) => [path, digest]));
  const files = [...new Set([...planned.keys(), ...previewed.keys()])].filter(
    (path) => planned.get(path) !== previewed.get(path),
  );
  if (files.length === 0) return;
  const names = files.length > 5 ? [...files.slice(0, 5), `${files.length - 5} more`] : files;
  const [isAre, them] = files.length === 1 ? ["is", "it"] : ["are", "them"];
  throw new KitError({
    code: "conflict",
    message: `${names.join(", ")} ${isAre} not as the preview showed ${them} any more, so nothing was written.`,
    hint: "Request a new preview, and write that one.",
    meta: { files },
  });
}
