import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Imports that run: imports of types change no test. */
const importPattern = /^(?!import type\b).*?(?:\bfrom |\bimport\(|^import )"(\.{1,2}\/[^"]+)"/gm;

/** Returns the paths that Git reports as new or changed since a commit (default: the last one), relative to the root. */
export function changedPaths(root: string, since = "HEAD"): readonly string[] {
  const git = (...args: readonly string[]): string =>
    execFileSync("git", args, { cwd: root, encoding: "utf8" });
  const listed = git("diff", "--name-only", since) + git("ls-files", "--others", "--exclude-standard");
  return listed.split("\n").filter((path) => path !== "");
}

/** Returns, by module, the paths that it imports; all relative to the root. */
export function readImports(root: string): ReadonlyMap<string, readonly string[]> {
  const listed = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "--", "*.ts"], {
    cwd: root,
    encoding: "utf8",
  });
  const paths = listed.split("\n").filter((path) => path !== "");
  return new Map(
    paths.map((path) => {
      // Git can list a file that was removed.
      const text = readText(join(root, path));
      const found = [...text.matchAll(importPattern)];
      return [path, found.map(([, specifier = ""]) => join(dirname(path), specifier))];
    }),
  );
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** Returns, by module, how many imports lead to the nearest changed module. A module that reaches none is absent. */
export function importDistances(
  changed: readonly string[],
  imports: ReadonlyMap<string, readonly string[]>,
): ReadonlyMap<string, number> {
  const importers = new Map<string, string[]>();
  for (const [path, imported] of imports)
    for (const each of imported) importers.set(each, [...(importers.get(each) ?? []), path]);
  const distances = new Map(changed.map((path) => [path, 0]));
  // A map also visits entries that are added during the loop, so the nearest come first.
  for (const [path, distance] of distances)
    for (const importer of importers.get(path) ?? [])
      if (!distances.has(importer)) distances.set(importer, distance + 1);
  return distances;
}

/**
 * Returns at most `most` tests: first those in the folder of a changed module, then those with the shortest import path to
 * one. Among equally near tests, those in its room (`src/specs`) come first, and otherwise the order of `tests` applies.
 */
export function nearestTests(
  tests: readonly string[],
  { changed, imports, most }: NearestOptions,
): readonly string[] {
  const distances = importDistances(changed, imports);
  const folders = new Set(changed.map((path) => dirname(path)));
  const rooms = new Set(changed.map(roomOf));
  const rank = (path: string): number => {
    const distance = distances.get(path) ?? imports.size;
    // A test of the folder can reach the module only over helpers that have no import of it.
    if (folders.has(dirname(path))) return distance - 2 * imports.size - 1;
    return 2 * distance + (rooms.has(roomOf(path)) ? 0 : 1);
  };
  return tests.toSorted((a, b) => rank(a) - rank(b)).slice(0, most);
}

const roomOf = (path: string): string => path.split("/").slice(0, 2).join("/");

interface NearestOptions {
  readonly changed: readonly string[];
  readonly imports: ReadonlyMap<string, readonly string[]>;
  readonly most: number;
}
