import { existsSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { readJson } from "./packages.ts";

/** An entry of `packages` in a package-lock.json, as far as kit reads it. */
interface LockEntry {
  readonly version?: string;
  readonly link?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}

type LockEntries = Readonly<Record<string, LockEntry>>;

/** The lock file of an output, or why there is none. */
export type OutputLock = { readonly text: string } | { readonly missing: string };

/** The fields of an output's package.json that its lock file repeats. */
export interface OutputPackage {
  readonly name: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly engines: Readonly<Record<string, string>>;
}

/**
 * The package-lock.json of an output, from that of the project: the packages that it lists and all that they need, at the
 * project's versions and digests. npm accepts it only if it is complete, so there is none if any entry is missing.
 */
export function lockOutput(root: string, output: OutputPackage): OutputLock {
  const folder = findLock(root);
  if (folder === undefined) return { missing: "the project has no package-lock.json" };
  const { packages } = readJson(join(folder, "package-lock.json")) as { readonly packages?: LockEntries };
  if (packages === undefined) return { missing: "the package-lock.json is of npm 6 or cannot be read" };
  const from = relative(folder, root).split(sep).join("/");
  const found = new Map<string, { readonly entry: LockEntry; isOptional: boolean }>();
  const waiting: { name: string; from: string; isOptional: boolean }[] = [];
  for (const [name, version] of Object.entries(output.dependencies)) {
    const path = resolveEntry(packages, { name, from });
    if (path === undefined || packages[path]?.version !== version)
      return { missing: `the package-lock.json does not have ${name} ${version}, which is installed` };
    waiting.push({ name, from, isOptional: false });
  }
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { isOptional } = next;
    const path = resolveEntry(packages, next);
    const entry = path === undefined ? undefined : packages[path];
    if (path === undefined || entry === undefined) {
      if (isOptional) continue;
      return { missing: `the package-lock.json does not have ${next.name}, which ${next.from} needs` };
    }
    if (entry.link === true) return { missing: `${next.name} is a folder and not a package of a registry` };
    const known = found.get(path);
    if (known !== undefined && (isOptional || !known.isOptional)) continue;
    found.set(path, { entry, isOptional });
    waiting.push(
      ...needs(entry).map((need) => ({ ...need, from: path, isOptional: isOptional || need.isOptional })),
    );
  }
  const entries = [...found].map(([path, { entry, isOptional }]) => {
    const place = from !== "" && path.startsWith(`${from}/`) ? path.slice(from.length + 1) : path;
    const { dev: _, devOptional: __, peer: ___, optional: ____, ...rest } = entry as Record<string, unknown>;
    return [place, { ...rest, ...(isOptional ? { optional: true } : {}) }] as const;
  });
  const isElsewhere = entries.some(([place]) => !place.startsWith("node_modules/"));
  if (isElsewhere || new Set(entries.map(([place]) => place)).size < entries.length)
    return { missing: "the workspace and the top of its repository have different versions of a package" };
  const { name, dependencies, engines } = output;
  const lock = {
    name,
    lockfileVersion: 3,
    requires: true,
    packages: {
      "": { name, dependencies, engines },
      ...Object.fromEntries(entries.sort(([one], [other]) => (one < other ? -1 : 1))),
    },
  };
  return { text: `${JSON.stringify(lock, null, 2)}\n` };
}

/** The folder of the lock file: that of the project, or of the workspaces to which it belongs. */
function findLock(root: string): string | undefined {
  for (let folder = root; ; folder = dirname(folder)) {
    if (existsSync(join(folder, "package-lock.json"))) return folder;
    if (existsSync(join(folder, ".git")) || dirname(folder) === folder) return undefined;
  }
}

/** The path of a package as a package at the path `from` finds it: in its own `node_modules`, or in one above. */
function resolveEntry(
  packages: LockEntries,
  { name, from }: { readonly name: string; readonly from: string },
): string | undefined {
  for (let folder = from; ; folder = folder.includes("/") ? folder.slice(0, folder.lastIndexOf("/")) : "") {
    const path = `${folder === "" ? "" : `${folder}/`}node_modules/${name}`;
    if (path in packages) return path;
    if (folder === "") return undefined;
  }
}

function needs(entry: LockEntry): readonly { readonly name: string; readonly isOptional: boolean }[] {
  const {
    dependencies = {},
    optionalDependencies = {},
    peerDependencies = {},
    peerDependenciesMeta = {},
  } = entry;
  return [
    ...Object.keys(dependencies).map((name) => ({ name, isOptional: false })),
    ...Object.keys(optionalDependencies).map((name) => ({ name, isOptional: true })),
    ...Object.keys(peerDependencies)
      .filter((name) => peerDependenciesMeta[name]?.optional !== true)
      .map((name) => ({ name, isOptional: false })),
  ];
}
