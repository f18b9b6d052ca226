import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { lstat, open, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { KitError } from "../../base/kit-error.ts";

/** A file, folder or link of a workspace; paths are POSIX, from its root. */
export type ManifestEntry =
  | { readonly path: string; readonly kind: "folder"; readonly mode: number }
  | { readonly path: string; readonly kind: "link"; readonly target: string }
  | {
      readonly path: string;
      readonly kind: "file";
      readonly mode: number;
      readonly size: number;
      /** Milliseconds since 1970. */
      readonly modified: number;
      /** SHA-256 of each piece of its content, hexadecimal. */
      readonly pieces: readonly string[];
    };

export type FileEntry = Extract<ManifestEntry, { kind: "file" }>;

/** Bytes of a piece; the last one of a file has fewer. */
const pieceBytes = 1_048_576;
/** More than this is not a workspace that is kept. */
const mostEntries = 100_000;

/** Digests of files by their path, as long as the system says that they are as they were. */
export type KnownFiles = Map<string, { readonly stamp: string; readonly pieces: readonly string[] }>;

/**
 * Reads what lies in a folder, without following links, parents first. Sockets, pipes and devices are left out, and so is what is
 * removed or replaced while it is read: the call that changes it saves again.
 */
export async function scanWorkspace(
  root: string,
  known: KnownFiles,
  maxBytes: number,
): Promise<ManifestEntry[]> {
  const entries: ManifestEntry[] = [];
  const seen: KnownFiles = new Map();
  let bytes = 0;
  const visit = async (folder: string): Promise<void> => {
    const names = (await unlessGone(folder, readdir(join(root, folder)))) ?? [];
    for (const name of names.sort()) {
      const path = folder === "" ? name : `${folder}/${name}`;
      const file = join(root, path);
      const stat = await unlessGone(path, lstat(file, { bigint: true }));
      if (stat === undefined) continue;
      if (entries.length >= mostEntries) throw tooMany();
      const mode = Number(stat.mode & 0o777n);
      if (stat.isDirectory()) {
        entries.push({ path, kind: "folder", mode });
        await visit(path);
      } else if (stat.isSymbolicLink()) {
        const target = await unlessGone(path, readlink(file));
        if (target !== undefined) entries.push({ path, kind: "link", target });
      } else if (stat.isFile()) {
        if (bytes + Number(stat.size) > maxBytes) throw tooLarge(maxBytes);
        const stamp = `${stat.ino} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs}`;
        const before = known.get(path);
        const pieces = before?.stamp === stamp ? before.pieces : await unlessGone(path, digestsOf(file));
        if (pieces === undefined) continue;
        bytes += Number(stat.size);
        seen.set(path, { stamp, pieces });
        entries.push({
          path,
          kind: "file",
          mode,
          size: Number(stat.size),
          modified: Number(stat.mtimeMs),
          pieces,
        });
      }
    }
  };
  await visit("");
  known.clear();
  for (const [path, file] of seen) known.set(path, file);
  return entries;
}

/** Codes of a path that is not what it was a moment before: removed, or of another kind. */
const goneCodes: ReadonlySet<unknown> = new Set([
  "ENOENT",
  "ENOTDIR",
  "EISDIR",
  "ELOOP",
  "EINVAL",
  "ENXIO",
  "EAGAIN",
]);

/** The result of a reading; undefined where another call removed or replaced what is read. Throws `forbidden` for what may not be read. */
export async function unlessGone<Result>(
  path: string,
  reading: Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await reading;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (goneCodes.has(code)) return undefined;
    if (code === "EACCES" || code === "EPERM") throw unreadable(path, error);
    throw error;
  }
}

async function digestsOf(file: string): Promise<readonly string[]> {
  const pieces: string[] = [];
  for await (const piece of piecesOfFile(file)) pieces.push(digestOf(piece));
  return pieces;
}

export function digestOf(piece: Uint8Array): string {
  return createHash("sha256").update(piece).digest("hex");
}

export async function* piecesOfFile(file: string): AsyncGenerator<Uint8Array> {
  // A pipe that took the file's place would hold a plain open until it has a writer.
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    for (let place = 0; ; ) {
      const buffer = Buffer.alloc(pieceBytes);
      const { bytesRead } = await handle.read(buffer, 0, pieceBytes, place);
      if (bytesRead === 0) return;
      place += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}

/**
 * Reads a manifest. A store may have been written by others: throws `unavailable` for a path that leads elsewhere, lies below a
 * file or a link, or comes twice.
 */
export function parseManifest(text: string): readonly ManifestEntry[] {
  let entries: unknown;
  try {
    entries = (JSON.parse(text) as { entries?: unknown }).entries;
  } catch (cause) {
    throw damaged("it is not JSON", cause);
  }
  if (!Array.isArray(entries) || entries.length > mostEntries) throw damaged("it has no list of files");
  const folders = new Set([""]);
  const paths = new Set<string>();
  for (const entry of entries as readonly ManifestEntry[]) {
    const { path } = entry;
    if (typeof path !== "string" || !isInside(path))
      throw damaged(`a path leads out of the workspace: ${JSON.stringify(path)}`);
    if (paths.has(path)) throw damaged(`a path comes twice: ${JSON.stringify(path)}`);
    if (!folders.has(path.slice(0, Math.max(0, path.lastIndexOf("/")))))
      throw damaged(`the folder of a path is missing: ${JSON.stringify(path)}`);
    if (!isEntry(entry)) throw damaged(`an entry is invalid: ${JSON.stringify(path)}`);
    paths.add(path);
    if (entry.kind === "folder") folders.add(path);
  }
  return entries as readonly ManifestEntry[];
}

function isEntry(entry: ManifestEntry): boolean {
  if (entry.kind === "link") return typeof entry.target === "string" && !entry.target.includes("\0");
  if (!Number.isInteger(entry.mode) || entry.mode < 0 || entry.mode > 0o777) return false;
  if (entry.kind === "folder") return true;
  return (
    entry.kind === "file" &&
    Array.isArray(entry.pieces) &&
    entry.pieces.every((piece) => /^[0-9a-f]{64}$/.test(piece)) &&
    Number.isInteger(entry.size) &&
    entry.size >= 0 &&
    Number.isFinite(entry.modified)
  );
}

function isInside(path: string): boolean {
  return (
    path !== "" &&
    !path.includes("\0") &&
    !path.includes("\\") &&
    path.split("/").every((part) => part !== "" && part !== "." && part !== "..")
  );
}

export function damaged(why: string, cause?: unknown): KitError {
  return new KitError({
    code: "unavailable",
    message: `The stored workspace cannot be used: ${why}.`,
    hint: "Nothing outside the workspace was touched. Delete the session, or its row in the table of workspaces.",
    cause,
  });
}

function unreadable(path: string, cause: unknown): KitError {
  return new KitError({
    code: "forbidden",
    message: `The workspace is not saved for other machines: ${JSON.stringify(path === "" ? "." : path)} cannot be read.`,
    hint: "Give its owner the right to read it (chmod u+r, for a folder u+rx), or remove it.",
    cause,
  });
}

function tooMany(): KitError {
  return new KitError({
    code: "payload_too_large",
    message: `The workspace has more than ${mostEntries.toLocaleString("en")} files and folders, so it is not saved for other machines.`,
    hint: "Remove files that can be generated again, such as node_modules.",
  });
}

function tooLarge(maxBytes: number): KitError {
  return new KitError({
    code: "payload_too_large",
    message: `The workspace has more than ${Math.round(maxBytes / 1_048_576)} MiB, so the latest changes are not saved for other machines.`,
    hint: "Remove what can be made again, or raise sandbox.persist_max_mb.",
  });
}
