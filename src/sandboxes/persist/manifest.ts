import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { lstat, open, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod/mini";
import { KitError } from "../../base/kit-error.ts";

/** Bytes of a piece; the last piece of a file can be shorter. */
const pieceBytes = 1_048_576;
/** A workspace with more entries is not saved. */
const maxEntries = 100_000;

/** A file, folder or link of a workspace; paths are POSIX, relative to its root. */
const path = z.string().check(z.refine(isInside, "a path leads out of the workspace"));
const mode = z.int().check(z.minimum(0), z.maximum(0o777));
const folderEntry = z.object({ path, kind: z.literal("folder"), mode });
const linkEntry = z.object({
  path,
  kind: z.literal("link"),
  target: z.string().check(z.refine((target) => !target.includes("\0"))),
});
const fileEntry = z.object({
  path,
  kind: z.literal("file"),
  mode,
  size: z.int().check(z.minimum(0)),
  /** Milliseconds since 1970. */
  modified: z.number(),
  /** SHA-256 of each piece of the content, hexadecimal. */
  pieces: z.readonly(z.array(z.string().check(z.regex(/^[0-9a-f]{64}$/)))),
});
const manifestSchema = z.object({
  entries: z
    .array(z.discriminatedUnion("kind", [folderEntry, linkEntry, fileEntry]))
    .check(z.maxLength(maxEntries)),
});

export type ManifestEntry = z.infer<typeof manifestSchema>["entries"][number];
export type FileEntry = z.infer<typeof fileEntry>;

/** Digests of files by path; valid while `stamp` (inode, size, times) is unchanged. */
export type KnownFiles = Map<string, { readonly stamp: string; readonly pieces: readonly string[] }>;

/**
 * Lists the entries of a folder, parents first, without following links. Skips sockets, pipes and devices,
 * and entries that are removed or replaced during the scan: the call that changes them saves again.
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
      if (entries.length >= maxEntries) throw tooMany();
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

/** Error codes of a path that was removed or became another kind of file during the scan. */
const goneCodes: ReadonlySet<unknown> = new Set([
  "ENOENT",
  "ENOTDIR",
  "EISDIR",
  "ELOOP",
  "EINVAL",
  "ENXIO",
  "EAGAIN",
]);

/** The result of `reading`; `undefined` if another call removed or replaced the file meanwhile. Throws `forbidden` if it cannot be read. */
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
  // Without O_NONBLOCK, opening a pipe that replaced the file would block until the pipe has a writer.
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    for (let position = 0; ; ) {
      const buffer = Buffer.alloc(pieceBytes);
      const { bytesRead } = await handle.read(buffer, 0, pieceBytes, position);
      if (bytesRead === 0) return;
      position += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}

/**
 * Parses a stored manifest. Others may have written to the store: throws `unavailable` for a path that leaves
 * the workspace, lies below a file or a link, or occurs twice.
 */
export function parseManifest(text: string): readonly ManifestEntry[] {
  const { data, error } = manifestSchema.safeParse(readJson(text));
  if (data === undefined) throw damagedWorkspace(explainIssue(error));
  const folders = new Set([""]);
  const paths = new Set<string>();
  for (const { path, kind } of data.entries) {
    if (paths.has(path)) throw damagedWorkspace(`a path occurs twice: ${JSON.stringify(path)}`);
    if (!folders.has(path.slice(0, Math.max(0, path.lastIndexOf("/")))))
      throw damagedWorkspace(`the folder of a path is missing: ${JSON.stringify(path)}`);
    paths.add(path);
    if (kind === "folder") folders.add(path);
  }
  return data.entries;
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw damagedWorkspace("it is not JSON", cause);
  }
}

function explainIssue({ issues: [issue] }: z.core.$ZodError): string {
  const [, index, field] = issue?.path ?? [];
  if (index === undefined) return `its list of files is missing or has more than ${maxEntries} entries`;
  return field === "path"
    ? `${issue?.message} (entry ${String(index)})`
    : `entry ${String(index)} is invalid`;
}

function isInside(path: string): boolean {
  return (
    path !== "" &&
    !path.includes("\0") &&
    !path.includes("\\") &&
    path.split("/").every((part) => part !== "" && part !== "." && part !== "..")
  );
}

export function damagedWorkspace(why: string, cause?: unknown): KitError {
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
    message: `The workspace has more than ${maxEntries.toLocaleString("en")} files and folders, so it is not saved for other machines.`,
    hint: "Remove files that can be generated again, such as node_modules.",
  });
}

function tooLarge(maxBytes: number): KitError {
  return new KitError({
    code: "payload_too_large",
    message: `The workspace has more than ${Math.round(maxBytes / 1_048_576)} MiB, so the latest changes are not saved for other machines.`,
    hint: "Remove files that can be generated again, or raise sandbox.persist_max_mb.",
  });
}
