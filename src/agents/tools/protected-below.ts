import { KitError } from "../../base/kit-error.ts";
import { isRepositoryFolder } from "../../base/names.ts";
import type { DirectoryEntry, Sandbox } from "../../sandboxes/contract.ts";
import { isGrantedPath, isSecretFile } from "../policy/protected-paths.ts";
import { toView } from "./command-context.ts";
import { isPartName } from "./repository-parts.ts";

/** Entries below a folder that kit looks at before it copies, moves or removes the folder. */
const maxEntries = 100_000;
/** Folders that are listed at the same time: each listing may be a call to another machine. */
const maxListings = 16;

interface Listing {
  /** Relative to the root of the workspace. */
  readonly folder: string;
  readonly entries: readonly DirectoryEntry[];
}

/** Lists a folder and those below it, without following links. Throws `forbidden` for too many entries, and if a folder cannot be listed. */
export async function* listingsBelow(top: string, sandbox: Sandbox): AsyncGenerator<Listing> {
  const pending = [top];
  let count = 0;
  while (pending.length > 0) {
    const listings = await Promise.all(
      pending.splice(0, maxListings).map(async (folder): Promise<Listing> => {
        const entries = await sandbox.list(toView(folder, sandbox)).catch((error: unknown) => {
          // It does not exist, or it is a file.
          if (folder === top && error instanceof KitError && error.code !== "forbidden") return [];
          throw new KitError({
            code: "forbidden",
            message: `kit cannot look at what is in "${folder}".`,
            cause: error,
          });
        });
        return { folder, entries };
      }),
    );
    for (const listing of listings) {
      count += listing.entries.length;
      if (count > maxEntries)
        throw new KitError({ code: "forbidden", message: `"${top}" has too many entries to look at.` });
      yield listing;
      for (const { name, kind } of listing.entries)
        if (kind === "directory") pending.push(joined(listing.folder, name));
    }
  }
}

interface Carried {
  /** The folder that a copy or move reads, or that is removed; relative to the root. */
  readonly source: string;
  /** Whether the source goes away. */
  readonly removes: boolean;
  /** The place of the copy, or of the folder after the move. */
  readonly target?: string;
  readonly granted: readonly string[];
  /** Collects the copies that can be parts of a repository. */
  readonly made?: string[];
  readonly isProtected: (path: string, removes: boolean) => boolean;
}

/**
 * Returns why a folder may not be copied, moved or removed: what is below it is protected, here or at its new place. Files of
 * secrets may be copied: the copies are secret by the same names.
 */
export async function faultOfTree(carried: Carried, sandbox: Sandbox): Promise<string | undefined> {
  const { source, removes, target, granted, made, isProtected } = carried;
  for await (const { folder, entries } of listingsBelow(source, sandbox)) {
    const place = target === undefined ? undefined : joined(target, folder.slice(source.length));
    const changed = [...(removes ? [folder] : []), ...(place === undefined ? [] : [place])];
    if (isRepositoryFolder(new Set(entries.map(({ name }) => name)))) {
      const found = changed.find((path) => !isGrantedPath(path, granted));
      if (found !== undefined) return `Git takes "${found}" for a repository`;
    }
    for (const { name, kind } of entries) {
      const path = joined(folder, name);
      if (removes && isProtected(path, kind !== "file")) return `"${path}" is protected`;
      const copy = place === undefined ? undefined : joined(place, name);
      if (copy !== undefined && isPartName(name)) made?.push(copy);
      if (copy !== undefined && !isSecretFile(copy) && isProtected(copy, false))
        return `"${copy}" would be protected`;
    }
  }
  return undefined;
}

function joined(folder: string, name: string): string {
  return folder === "" || name === "" ? `${folder}${name}` : `${folder}/${name.replace(/^\/+/, "")}`;
}
