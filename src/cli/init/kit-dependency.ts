import { relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { version } from "../../base/version.ts";

/**
 * What a new project's package.json asks for: the version that runs now, or the folder of the checkout
 * where kit runs from one.
 */
export function kitDependency(folder: string): string {
  const root = fileURLToPath(new URL("../../../", import.meta.url));
  if (root.includes(`${sep}node_modules${sep}`)) return `^${version}`;
  return `file:${relative(folder, root).split(sep).join("/")}`;
}
