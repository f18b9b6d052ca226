import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** A package of the project, found by one of its files. */
export interface FoundPackage {
  readonly name: string;
  readonly version: string;
  /** Absolute. */
  readonly folder: string;
  /** The reason why it cannot be bundled; undefined if it can. */
  readonly native: string | undefined;
}

interface Manifest {
  readonly name?: unknown;
  readonly version?: unknown;
  readonly gypfile?: unknown;
  readonly os?: unknown;
  readonly cpu?: unknown;
  readonly scripts?: Readonly<Record<string, unknown>>;
  readonly dependencies?: Readonly<Record<string, unknown>>;
  readonly optionalDependencies?: Readonly<Record<string, unknown>>;
  readonly peerDependencies?: Readonly<Record<string, unknown>>;
}

const nativeHelpers = ["node-gyp-build", "bindings", "prebuild-install", "node-pre-gyp", "node-addon-api"];
const known = new Map<string, FoundPackage | undefined>();

/** The installed package that a file belongs to; undefined for a file outside of `node_modules`. */
export function packageOfFile(file: string): FoundPackage | undefined {
  const [, folder] = /^(.*[/\\]node_modules[/\\](?:@[^/\\]+[/\\])?[^/\\]+)/.exec(file) ?? [];
  if (folder === undefined) return undefined;
  if (!known.has(folder)) known.set(folder, readPackage(folder));
  return known.get(folder);
}

/** The package, as a module in `from` resolves it. */
export function findPackage(name: string, from: string): FoundPackage | undefined {
  for (let current = from; ; current = dirname(current)) {
    const folder = join(current, "node_modules", name);
    if (existsSync(join(folder, "package.json"))) return readPackage(folder);
    if (dirname(current) === current) return undefined;
  }
}

function readPackage(folder: string): FoundPackage | undefined {
  const manifest = readJson(join(folder, "package.json"));
  if (typeof manifest.name !== "string" || typeof manifest.version !== "string") return undefined;
  return {
    name: manifest.name,
    version: manifest.version,
    folder,
    native: nativePart(folder, manifest),
  };
}

function nativePart(folder: string, manifest: Manifest): string | undefined {
  const { scripts = {}, dependencies = {} } = manifest;
  if (manifest.gypfile === true || existsSync(join(folder, "binding.gyp"))) return "it has native code";
  if (manifest.os !== undefined || manifest.cpu !== undefined) return "it is for one system";
  if (["preinstall", "install", "postinstall"].some((name) => scripts[name] !== undefined))
    return "it has a script of its installation";
  const helper = nativeHelpers.find((name) => name in dependencies || `@mapbox/${name}` in dependencies);
  if (helper !== undefined) return `it loads native code by ${helper}`;
  return readdirSync(folder).some((name) => name.endsWith(".node")) ? "it has native code" : undefined;
}

/** The JSON object in a file; an empty one if the file is missing. */
export function readJson(file: string): Manifest {
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    return typeof value === "object" && value !== null ? (value as Manifest) : {};
  } catch {
    return {};
  }
}
