/** What is specified together: by convention the documents of one folder. */
export interface Feature {
  /** Unique in the project: the folder's name, with as many folders above it as that takes. */
  readonly label: string;
  /** The folder, or the file where a file stands for itself. */
  readonly path: string;
}

/** Folders that every feature of a tool lies in; they tell no feature from another. */
const commonFolders = new Set([".kiro", "specs", "openspec", "changes", ".specify", ".tessl"]);
const fileEnding = /(?:\.spec)?\.[A-Za-z]{1,5}$/;

/**
 * Names every feature by the last part of its path, and by as many parts above it as it takes to
 * tell it from the others: `auth`, or `api/auth` and `web/auth`.
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
    // Paths that differ in nothing but a tool's own folders are told apart by the whole path.
    const unique = seen.has(label) ? path : label;
    seen.add(unique);
    return { path, label: unique };
  });
}

function partsOf(path: string): readonly string[] {
  const segments = path.replace(fileEnding, "").split("/");
  const telling = segments.filter((segment) => segment !== "" && !commonFolders.has(segment));
  return telling.length > 0 ? telling : ["project"];
}

function labelOf(parts: readonly string[] = [], length = 1): string {
  return parts.slice(-length).join("/");
}
