import type { Glob } from "../../base/glob/glob.ts";
import { perObject } from "../../base/remember.ts";
import { relativeTo } from "../guideline-record.ts";

/** The files of a project, so that a glob is tried on few of them. */
export interface FileIndex {
  readonly size: number;
  /** Whether a file below `scope` matches a glob relative to it. */
  hasMatch(glob: Glob, scope: string): boolean;
  /** Whether a folder of this path has files. */
  hasFolder(path: string): boolean;
}

/** `files` are project-relative, in any order; a list that never changes. */
export const fileIndexOf = perObject((files: readonly string[]): FileIndex => {
  const sorted = files.toSorted();
  const names = new Set(sorted.flatMap((path) => path.split("/")));
  const byExtension = Map.groupBy(sorted, extensionOf);
  const candidates = (glob: Glob, scope: string): readonly string[] => {
    if (!glob.names.every((name) => names.has(name))) return [];
    const dot = glob.suffix.lastIndexOf(".");
    const list =
      dot === -1 || glob.suffix.includes("/") ? sorted : (byExtension.get(glob.suffix.slice(dot)) ?? []);
    return startingWith(list, scope === "" ? glob.prefix : `${scope}/${glob.prefix}`);
  };
  return {
    size: sorted.length,
    hasMatch: (glob, scope) => candidates(glob, scope).some((path) => glob.matches(relativeTo(path, scope))),
    hasFolder: (path) => path === "" || startingWith(sorted, `${path}/`).length > 0,
  };
});

function extensionOf(path: string): string {
  const dot = path.lastIndexOf(".");
  return dot > path.lastIndexOf("/") ? path.slice(dot) : "";
}

/** The part of a sorted list whose texts begin with a prefix. */
function startingWith(sorted: readonly string[], prefix: string): readonly string[] {
  if (prefix === "") return sorted;
  const from = firstIndex(sorted, (text) => text >= prefix);
  const to = firstIndex(sorted, (text) => text >= prefix && !text.startsWith(prefix));
  return sorted.slice(from, to);
}

function firstIndex(sorted: readonly string[], passes: (text: string) => boolean): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (passes(sorted[middle] ?? "")) high = middle;
    else low = middle + 1;
  }
  return low;
}
