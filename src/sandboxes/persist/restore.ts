import { chmod, lstat, mkdir, open, rename, rm, symlink, utimes } from "node:fs/promises";
import { join } from "node:path";
import {
  damagedWorkspace,
  digestOf,
  type FileEntry,
  type KnownFiles,
  type ManifestEntry,
  scanWorkspace,
} from "./manifest.ts";

/** Reads a stored piece; `undefined` if the store lacks it. */
export type ReadPiece = (name: string) => Promise<Uint8Array | undefined>;

/**
 * Makes a folder match the manifest: removes entries that the manifest lacks, and rewrites those that differ.
 * Creates links, but never follows them. No command of the workspace may run meanwhile.
 */
export async function restoreWorkspace(
  root: string,
  entries: readonly ManifestEntry[],
  { known, read }: { readonly known: KnownFiles; readonly read: ReadPiece },
): Promise<void> {
  await mkdir(root, { recursive: true });
  const expected = new Map(entries.map((entry) => [entry.path, entry]));
  const present = new Map(
    (await scanWorkspace(root, known, Number.POSITIVE_INFINITY)).map((entry) => [entry.path, entry]),
  );
  for (const { path, kind } of [...present.values()].reverse()) {
    if (expected.get(path)?.kind === kind) continue;
    await rm(join(root, path), { recursive: true, force: true });
    present.delete(path);
  }
  // Manifests list no special files; remove one that is in the way, so that nothing is written into it.
  for (const entry of entries) {
    const file = join(root, entry.path);
    const before = present.get(entry.path);
    if (before === undefined && (await lstat(file).catch(() => undefined)) !== undefined)
      await rm(file, { recursive: true, force: true });
    if (entry.kind === "folder") {
      if (before === undefined) await mkdir(file);
      // The folder must be writable while its entries are created.
      await chmod(file, 0o700);
    } else if (entry.kind === "link") await restoreLink(file, entry, before);
    else await restoreFile(file, entry, { before, read });
  }
  for (const entry of [...entries].reverse())
    if (entry.kind === "folder") await chmod(join(root, entry.path), entry.mode);
}

async function restoreLink(
  file: string,
  { target }: Extract<ManifestEntry, { kind: "link" }>,
  before: ManifestEntry | undefined,
): Promise<void> {
  if (before?.kind === "link" && before.target === target) return;
  await rm(file, { force: true });
  await symlink(target, file);
}

async function restoreFile(
  file: string,
  entry: FileEntry,
  { before, read }: { readonly before: ManifestEntry | undefined; readonly read: ReadPiece },
): Promise<void> {
  const isSame = before?.kind === "file" && before.pieces.join() === entry.pieces.join();
  if (!isSame) {
    const draft = `${file}.kit-${process.pid}-restored`;
    await rm(draft, { force: true });
    const handle = await open(draft, "wx", 0o600);
    try {
      for (const name of entry.pieces) {
        const piece = await read(name);
        if (piece === undefined || digestOf(piece) !== name)
          throw damagedWorkspace(
            `the content of ${JSON.stringify(entry.path)} is ${piece === undefined ? "missing" : "not the content that was saved"}`,
          );
        await handle.write(piece);
      }
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    } finally {
      await handle.close();
    }
    await rename(draft, file);
    await chmod(file, entry.mode);
  } else if (before.mode !== entry.mode) await chmod(file, entry.mode);
  if (!isSame || before.modified !== entry.modified)
    await utimes(file, new Date(entry.modified), new Date(entry.modified));
}
