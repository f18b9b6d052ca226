import { findPlace } from "../../../files/find-place.ts";
import { createIgnoreScope, type IgnoreScope, ignoreFileName } from "../../../files/ignore-scope.ts";
import { joinPath } from "../../../files/join-path.ts";
import { readRegularFileSync } from "../../../files/read-regular-file-sync.ts";
import type { Workspace } from "../workspace.ts";

/** What a search leaves out. */
export interface SearchScope {
  /** Undefined where nothing is ignored: in a folder that is ignored itself, and was asked for. */
  readonly ignored: IgnoreScope | undefined;
  /** The scope of a folder that is open at `folder`, below this one. */
  enter(path: string, folder: string): SearchScope;
}

const maxIgnoreFileBytes = 1024 * 1024;

/** The scope in which a search of the folder at `path` starts, by the ignore files above it. */
export async function createSearchScope(workspace: Workspace, path: string): Promise<SearchScope> {
  const texts = new Map<string, string>();
  const outermost = createIgnoreScope({
    outer: workspace.outerRules(),
    readText: (file) => texts.get(file) ?? "",
  });
  const scopeOf = (ignored: IgnoreScope | undefined): SearchScope => ({
    ignored,
    enter(below, folder) {
      if (ignored === undefined) return this;
      const bytes = readRegularFileSync(folder, ignoreFileName, maxIgnoreFileBytes);
      if (bytes === undefined) return this;
      texts.set(joinPath(below, ignoreFileName), bytes.toString("utf8"));
      return scopeOf(ignored.enter(below));
    },
  });
  let scope = scopeOf(outermost);
  let above = "";
  for (const name of path === "" ? [] : path.split("/")) {
    const place = await findPlace({ root: workspace.root, path: above, end: "folder" });
    if (place === undefined) break;
    scope = scope.enter(above, place.folder);
    await place.close();
    above = joinPath(above, name);
    if (scope.ignored?.ignores(above, true) === true) return scopeOf(undefined);
  }
  return scope;
}
