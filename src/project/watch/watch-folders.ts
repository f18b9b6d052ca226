import { type FSWatcher, watch } from "node:fs";
import { parentOf } from "../scan/folder.ts";

/** Watches folders of a project for changes in them. */
export interface FolderWatch {
  /**
   * Watches exactly these folders from now on; paths are relative to the root. Returns those that
   * were not watched before: what changed in them until now was missed.
   */
  setFolders(paths: Iterable<string>): readonly string[];
  close(): void;
}

export interface WatchFoldersOptions {
  /** Absolute, with links resolved. */
  readonly root: string;
  /** A folder in which something changed; undefined when that is not known. */
  readonly onChange: (folder: string | undefined) => void;
  /** The system cannot watch any more, or not all folders. */
  readonly onError: (error: unknown) => void;
}

/**
 * Watches the folders of a project, and them only: on Linux a watch each, because the system knows
 * no other, elsewhere one watch of the whole root. What has changed is for the caller to find out.
 */
export function createFolderWatch(options: WatchFoldersOptions): FolderWatch {
  return process.platform === "linux" ? watchEach(options) : watchRoot(options);
}

function watchEach({ root, onChange, onError }: WatchFoldersOptions): FolderWatch {
  const watchers = new Map<string, FSWatcher>();
  const open = (path: string): boolean => {
    try {
      const watcher = watch(path === "" ? root : `${root}/${path}`, () => onChange(path));
      watcher.on("error", (error) => {
        drop(path);
        // A folder that is deleted ends its watch with an error on some systems.
        onChange(parentOf(path));
        if (!isMissing(error)) onError(error);
      });
      watchers.set(path, watcher);
      return true;
    } catch (error) {
      if (!isMissing(error)) onError(error);
      return false;
    }
  };
  const drop = (path: string): void => {
    watchers.get(path)?.close();
    watchers.delete(path);
  };
  return {
    setFolders(paths) {
      const wanted = new Set(paths);
      for (const path of watchers.keys()) if (!wanted.has(path)) drop(path);
      return [...wanted].filter((path) => !watchers.has(path) && open(path));
    },
    close() {
      for (const path of [...watchers.keys()]) drop(path);
    },
  };
}

function watchRoot({ root, onChange, onError }: WatchFoldersOptions): FolderWatch {
  const watcher = watch(root, { recursive: true }, (_event, file) => {
    onChange(file === null ? undefined : parentOf(file.replaceAll("\\", "/")));
  });
  watcher.on("error", onError);
  return { setFolders: () => [], close: () => watcher.close() };
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}
