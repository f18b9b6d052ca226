import { constants, type Dirent } from "node:fs";
import { access, lstat, readdir, realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import { hasCode, joinPath } from "./obstacle.ts";

export interface FindFilesOptions {
  /** Selects files by name. */
  readonly accepts: (name: string) => boolean;
  /** Excludes entries, files and folders; default: none. */
  readonly skips?: (name: string) => boolean;
  /** Whether to search the folders below; default true. */
  readonly nested?: boolean;
}

export interface FoundFiles {
  /** POSIX paths, relative to the root, sorted by name. */
  readonly paths: readonly string[];
  /** Entries that cannot be read, each with the reason ("leads out of the project"). */
  readonly unusable: readonly UnusablePath[];
}

export interface UnusablePath {
  readonly path: string;
  readonly reason: string;
}

/**
 * Finds the files below a folder of a project. Follows links that stay in the project. Reports links that lead out
 * of the project, to nothing or in a circle, as well as pipes and unreadable folders, so that no entry is missing
 * silently. Reads every folder once, so the search always ends.
 */
export async function findFiles(
  root: string,
  folder: string,
  options: FindFilesOptions,
): Promise<FoundFiles> {
  const entry = await lstat(join(root, folder)).catch(() => undefined);
  const search = new Search(await realpath(root), options);
  if (entry !== undefined) await search.folder(folder);
  return search;
}

class Search implements FoundFiles {
  readonly paths: string[] = [];
  readonly unusable: UnusablePath[] = [];
  readonly #root: string;
  readonly #options: FindFilesOptions;
  /** The name under which each folder was read, by its real path. */
  readonly #read = new Map<string, string>();

  constructor(root: string, options: FindFilesOptions) {
    this.#root = root;
    this.#options = options;
  }

  async folder(path: string): Promise<void> {
    const real = await this.#follow(path, "folder");
    if (real === undefined) return;
    const before = this.#read.get(real);
    if (before !== undefined) return this.#refuse(path, `is ${before} under another name`);
    const isAround = [this.#root, ...this.#read.keys()].some((one) => `${one}/`.startsWith(real + sep));
    if (isAround) return this.#refuse(path, "is a link to a folder that contains it");
    this.#read.set(real, path);
    const entries = await readdir(real, { withFileTypes: true }).catch((error: unknown) => {
      this.#refuse(path, reasonOf(error));
      return [];
    });
    entries.sort((one, other) => (one.name < other.name ? -1 : 1));
    for (const entry of entries) {
      if (this.#options.skips?.(entry.name) !== true) await this.#visit(joinPath(path, entry.name), entry);
    }
  }

  async #visit(path: string, entry: Dirent): Promise<void> {
    const { accepts, nested = true } = this.#options;
    const isWanted = accepts(entry.name);
    if (entry.isDirectory()) {
      if (nested) await this.folder(path);
    } else if (!entry.isSymbolicLink()) {
      if (isWanted) await this.#file(path);
    } else if (await this.#leadsToFolder(path)) {
      if (nested) await this.folder(path);
    } else if (isWanted || nested) {
      await this.#file(path, isWanted);
    }
  }

  async #leadsToFolder(path: string): Promise<boolean> {
    return await stat(join(this.#root, path)).then(
      (stats) => stats.isDirectory(),
      () => false,
    );
  }

  async #file(path: string, isWanted = true): Promise<void> {
    const real = await this.#follow(path, "file");
    if (real === undefined || !isWanted) return;
    const fault = await access(real, constants.R_OK).then(() => undefined, reasonOf);
    if (fault === undefined) this.paths.push(path);
    else this.#refuse(path, fault);
  }

  /** The real path of an entry; undefined after reporting why it cannot be used. */
  async #follow(path: string, kind: "file" | "folder"): Promise<string | undefined> {
    try {
      const real = await realpath(join(this.#root, path));
      if (real !== this.#root && !real.startsWith(this.#root + sep))
        return this.#refuse(path, "leads out of the project");
      const stats = await stat(real);
      if (kind === "folder" ? stats.isDirectory() : stats.isFile()) return real;
      return this.#refuse(path, kind === "folder" ? "is not a folder" : "is not a regular file");
    } catch (error) {
      return this.#refuse(path, reasonOf(error));
    }
  }

  #refuse(path: string, reason: string): undefined {
    this.unusable.push({ path, reason });
  }
}

function reasonOf(error: unknown): string {
  if (hasCode(error, "ENOENT")) return "is a link to a missing file";
  if (hasCode(error, "ELOOP")) return "is a link to itself";
  if (hasCode(error, "EACCES") || hasCode(error, "EPERM")) return "cannot be read: permission denied";
  return "cannot be read";
}
