/** The documents that specify one feature: by convention those of one folder. */
export interface Feature {
  /** Unique in the project: the folder's name, with as many folders above it as needed. */
  readonly label: string;
  /** The folder, or the file of a feature with a single document. */
  readonly path: string;
}

/** Folders that all features of a tool share, so they are no part of a feature's name. */
const commonFolders = new Set([".kiro", "specs", "openspec", "changes", ".specify", ".tessl"]);
const fileEnding = /(?:\.spec)?\.[A-Za-z]{1,5}$/;

/**
 * Names every feature by the last part of its path, and by as many parts above it as a unique name needs: `auth`, or `api/auth`
 * and `web/auth`.
 */
export function labelFeatures(paths: readonly string[]): Feature[] {
  const parts = new Map(paths.map((path) => [path, partsOf(path)]));
  const lengths = new Map(paths.map((path) => [path, 1]));
  for (;;) {
    const groups = Map.groupBy(paths, (path) => labelOf(parts.get(path), lengths.get(path)));
    const unclear = [...groups.values()].filter((group) => group.length > 1).flat();
    const growing = unclear.filter((path) => (lengths.get(path) ?? 0) < (parts.get(path)?.length ?? 0));
    if (growing.length === 0) break;
    for (const path of growing) lengths.set(path, (lengths.get(path) ?? 0) + 1);
  }
  const seen = new Set<string>();
  return paths.map((path) => {
    const label = labelOf(parts.get(path), lengths.get(path));
    // Paths that differ only in a tool's own folders get the whole path as their name.
    const unique = seen.has(label) ? path : label;
    seen.add(unique);
    return { path, label: unique };
  });
}

/** The label of a feature without regard to others. */
export function shortLabel(path: string): string {
  return labelOf(partsOf(path));
}

function partsOf(path: string): readonly string[] {
  const segments = path.replace(fileEnding, "").split("/");
  const telling = segments.filter((segment) => segment !== "" && !commonFolders.has(segment));
  return telling.length > 0 ? telling : ["project"];
}

function labelOf(parts: readonly string[] = [], length = 1): string {
  return parts.slice(-length).join("/");
}
