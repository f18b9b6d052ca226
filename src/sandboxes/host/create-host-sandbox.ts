import type { Dirent, Stats } from "node:fs";
import { lstat, open, readdir, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { resolveInside } from "../../files/find-place.ts";
import { forbidden, ignoreMissing, invalid } from "../../files/obstacle.ts";
import { readRegularFile, replaceFile } from "../../files/replace-file.ts";
import { canHoldFolders, folderFlags, heldPath } from "../../files/walk.ts";
import type { DirectoryEntry, FileStat, Sandbox } from "../contract.ts";
import { exec } from "./exec/exec.ts";
import { replaceText, type TextChange } from "./replace-text.ts";
import { glob } from "./search/find-by-glob.ts";
import { grep } from "./search/grep.ts";
import { workspaceIsolation } from "./wall/enclose.ts";
import { notFound, toWorkspacePath, type View, type Workspace, withPlace } from "./workspace-path.ts";

/** The limit for models and strings; `download` reads larger files. */
const maxReadBytes = 16 * 1024 * 1024;
const maxDownloadBytes = 1024 * 1024 * 1024;

/** Creates a sandbox in a folder of this machine, for `local` and `virtual`. */
export function createHostSandbox(
  name: string,
  workspace: Omit<Workspace, "closing"> & { readonly release?: () => Promise<void> },
  options: { readonly shared?: boolean } = {},
): Sandbox {
  const controller = new AbortController();
  const running = new Set<Promise<unknown>>();
  return viewFrom("", {
    name,
    ...(options.shared === true ? { hostRoot: workspace.root } : {}),
    workspace: { ...workspace, shared: options.shared === true, closing: controller.signal },
    running,
    async close() {
      controller.abort();
      await Promise.allSettled(running);
      await workspace.release?.();
    },
  });
}

interface Shared {
  readonly name: string;
  readonly hostRoot?: string | undefined;
  readonly workspace: Workspace;
  /** Running commands. */
  readonly running: Set<Promise<unknown>>;
  close(): Promise<void>;
}

function viewFrom(cwd: string, shared: Shared): Sandbox {
  const { workspace } = shared;
  const view: View = { workspace, cwd };
  const inside = (path: string): string => toWorkspacePath(view, path);
  return {
    name: shared.name,
    capabilities: { exec: true, literalExec: true, persistent: true },
    cwd,
    hostRoot: shared.hostRoot,
    isolation: () => workspaceIsolation(workspace),
    resolve: async (path, options) =>
      await resolveInside({
        root: workspace.root,
        path: inside(path),
        area: "workspace",
        ...(options?.keepLink === true ? { end: "keep-link" } : {}),
      }),
    stat: (path) => stat(view, path),
    exists: (path) => exists(view, path),
    list: (path = "") => list(view, path),
    readFile: (path) => readText(view, path, maxReadBytes),
    readBytes: (path) => readBytes(view, path, maxReadBytes),
    writeFile: (path, content) => writeFile(view, path, content),
    writeBytes: (path, content) => writeFile(view, path, content),
    mkdir: (path) => makeFolder(view, path),
    rm: (path, options) => remove(view, path, options?.recursive === true),
    edit: (path, change) => editFile(view, path, { change, maxBytes: maxReadBytes }),
    grep: (request) => grep(view, request),
    glob: (pattern, options) => glob(view, pattern, options ?? {}),
    exec(request) {
      const command = exec(view, request).finally(() => shared.running.delete(command));
      shared.running.add(command);
      return command;
    },
    upload: (path, content) => writeFile(view, path, content),
    download: (path) => readBytes(view, path, maxDownloadBytes),
    at: (folder) => viewFrom(inside(folder), shared),
    close: shared.close,
  };
}

/** Throws `payload_too_large` for a file over `maxBytes`. */
function readBytes(view: View, path: string, maxBytes: number): Promise<Uint8Array> {
  return withPlace(view, path, {
    async work(place) {
      const bytes = await readRegularFile(place, maxBytes);
      if (bytes === undefined) throw notFound(place.path);
      return bytes;
    },
  });
}

/** The whole text, byte order mark included; bytes that are not UTF-8 become U+FFFD. */
async function readText(view: View, path: string, maxBytes: number): Promise<string> {
  const { buffer, byteOffset, byteLength } = await readBytes(view, path, maxBytes);
  return Buffer.from(buffer, byteOffset, byteLength).toString("utf8");
}

function stat(view: View, path: string): Promise<FileStat> {
  return withPlace(view, path, {
    async work(place) {
      const stats = await lstat(place.entry);
      return { kind: kindOf(stats), size: stats.size, modified_at: stats.mtime.toISOString() };
    },
  });
}

async function exists(view: View, path: string): Promise<boolean> {
  try {
    await stat(view, path);
    return true;
  } catch (error) {
    if (error instanceof KitError && error.code === "not_found") return false;
    throw error;
  }
}

/** Lists the entries of a folder, sorted by name in code-unit order. */
function list(view: View, path: string): Promise<readonly DirectoryEntry[]> {
  return withPlace(view, path, {
    end: "folder",
    async work(place) {
      const entries = await readdir(place.folder, { withFileTypes: true });
      return entries
        .map((entry) => ({ name: entry.name, kind: kindOf(entry) }))
        .sort((entry, other) => (entry.name < other.name ? -1 : 1));
    },
  });
}

function kindOf(entry: Stats | Dirent): FileStat["kind"] {
  if (entry.isFile()) return "file";
  if (entry.isDirectory()) return "directory";
  return entry.isSymbolicLink() ? "link" : "other";
}

async function writeFile(view: View, path: string, content: string | Uint8Array): Promise<void> {
  if (path === "" || path.endsWith("/")) throw invalid("The path to write must name a file, not a folder.");
  await withPlace(view, path, {
    createFolders: true,
    work: (place) => replaceFile(place, { content }),
  });
}

async function makeFolder(view: View, path: string): Promise<void> {
  await withPlace(view, path, { createFolders: true, end: "folder", work: async () => undefined });
}

/** Throws `conflict` if the file changes between reading and writing. */
function editFile(
  view: View,
  path: string,
  { change, maxBytes }: { readonly change: TextChange; readonly maxBytes: number },
): Promise<{ readonly replacements: number }> {
  return withPlace(view, path, {
    async work(place) {
      const bytes = await readRegularFile(place, maxBytes);
      if (bytes === undefined) throw notFound(place.path);
      const { text, replacements } = replaceText(bytes, change, place.path);
      await replaceFile(place, { content: text, expected: bytes });
      return { replacements };
    },
  });
}

async function remove(view: View, path: string, recursive: boolean): Promise<void> {
  if (toWorkspacePath(view, path) === "") {
    throw forbidden("The workspace itself cannot be removed.");
  }
  await withPlace(view, path, {
    end: "keep-link",
    async work(place) {
      const stats = await lstat(place.entry);
      if (!stats.isDirectory()) await unlink(place.entry);
      else if (recursive) await removeFolder(place.entry);
      else throw invalid(`${place.path} is a folder; set recursive to remove it.`);
    },
  });
}

/** Removes a folder through its open descriptor, so that a folder swapped in its place is not emptied. */
async function removeFolder(path: string): Promise<void> {
  const handle = canHoldFolders() ? await open(path, folderFlags) : undefined;
  const pathOfFile = handle === undefined ? path : heldPath(handle.fd);
  try {
    for (const entry of await readdir(pathOfFile, { withFileTypes: true })) {
      // If a folder became a link after the listing, opening it fails. Links are unlinked, never followed.
      if (entry.isDirectory()) await removeFolder(join(pathOfFile, entry.name));
      else await unlink(join(pathOfFile, entry.name)).catch(ignoreMissing);
    }
  } finally {
    await handle?.close();
  }
  await rmdir(path).catch(ignoreMissing);
}
