import { readdir, readFile, realpath } from "node:fs/promises";
import { join } from "node:path";
import type { OutputFiles } from "./bundler.ts";
import { type FoundPackage, findPackage, readJson } from "./packages.ts";

interface PlacedPackage {
  /** The folder below the output: `node_modules/pg`, `node_modules/a/node_modules/b`. */
  readonly place: string;
  readonly found: FoundPackage;
}

/** Packages with all their dependencies, as an output contains them. */
export interface PackageFiles {
  readonly files: OutputFiles;
  /** Packages with native code, which runs only on machines like this one. */
  readonly native: readonly string[];
}

/**
 * The package files for an output on which npm never runs: each package in `node_modules`, with its dependencies, at
 * the versions installed in this project. A package that is not installed is left out.
 */
export async function packageFiles(names: readonly string[], from: string): Promise<PackageFiles> {
  const placed = await placePackages(names, from);
  const files: OutputFiles = new Map();
  const native = new Set<string>();
  for (const { place, found } of placed) {
    if (found.native !== undefined) native.add(found.name);
    for (const path of await filesOf(found.folder, ""))
      files.set(`${place}/${path}`, await readFile(join(found.folder, path)));
  }
  return { files, native: [...native].sort() };
}

/** The files of a package, without nested packages, which have paths of their own. */
async function filesOf(folder: string, below: string): Promise<readonly string[]> {
  const entries = await readdir(join(folder, below), { withFileTypes: true });
  const nested = entries
    .filter(({ name }) => name !== "node_modules")
    .map(async (entry) => {
      const path = below === "" ? entry.name : `${below}/${entry.name}`;
      if (entry.isDirectory()) return await filesOf(folder, path);
      return entry.isFile() ? [path] : [];
    });
  return (await Promise.all(nested)).flat().sort();
}

/** Chooses the path of each package, so that every importer finds the same version as in the project. */
async function placePackages(names: readonly string[], from: string): Promise<readonly PlacedPackage[]> {
  const placed = new Map<string, FoundPackage>();
  const waiting: { name: string; from: string; below: string }[] = names.map((name) => ({
    name,
    from,
    below: "",
  }));
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const linked = findPackage(next.name, next.from);
    if (linked === undefined) continue;
    // A link leads to the folder in which the package finds its own.
    const found = { ...linked, folder: await realpath(linked.folder) };
    const seen = lookUp(placed, next.name, next.below);
    if (seen?.folder === found.folder) continue;
    const top = `node_modules/${next.name}`;
    const place = seen === undefined ? top : `${next.below}/${top}`;
    placed.set(place, found);
    for (const name of dependenciesOf(found)) waiting.push({ name, from: found.folder, below: place });
  }
  return [...placed].map(([place, found]) => ({ place, found }));
}

/** The package that a module of the package at `below` imports under a name. */
function lookUp(
  placed: ReadonlyMap<string, FoundPackage>,
  name: string,
  below: string,
): FoundPackage | undefined {
  for (let at = below; ; at = at.slice(0, Math.max(0, at.lastIndexOf("/node_modules/")))) {
    const found = placed.get(at === "" ? `node_modules/${name}` : `${at}/node_modules/${name}`);
    if (found !== undefined || at === "") return found;
  }
}

function dependenciesOf({ folder }: FoundPackage): readonly string[] {
  const {
    dependencies = {},
    optionalDependencies = {},
    peerDependencies = {},
  } = readJson(join(folder, "package.json"));
  return Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies }).sort();
}
