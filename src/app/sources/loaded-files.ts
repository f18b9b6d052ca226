import { basename, dirname, extname, join, posix, sep } from "node:path";
import { folded } from "../../agents/policy/protected-paths.ts";

/** What Node takes for code, beside files without an extension. */
const code = /^\.(?:[cm]?[jt]sx?|json|node|wasm)$/;

/** As it is called, by the name that disks compare. */
const files = new Map<string, string>();
/** Names without extension under which a file may be asked for: another one could come in its place. */
const stems = new Set<string>();

/** Notes a file that this process loads: modules are the process's, whoever imports them. */
export function noteLoaded(file: string): void {
  const name = folded(file);
  if (files.has(name)) return;
  files.set(name, file);
  const stem = withoutExtension(name);
  stems.add(stem);
  if (basename(stem) === "index") stems.add(dirname(stem));
}

/** See `SourceGuard.isLoaded`. */
export function isLoadedFile(file: string, removes: boolean): boolean {
  const name = folded(file.replaceAll("\\", "/"));
  if (files.has(name)) return true;
  const extension = extname(name);
  if ((extension === "" || code.test(extension)) && !removes && stems.has(withoutExtension(name)))
    return true;
  if (!removes) return false;
  for (const loaded of files.keys()) if (loaded.startsWith(`${name}/`)) return true;
  return false;
}

/** The loaded files below a folder as paths from it, with the `package.json` above each; of packages the folders. */
export function loadedBelow(folder: string): readonly string[] {
  const found = new Set<string>();
  for (const file of files.values()) {
    if (!file.startsWith(`${folder}${sep}`)) continue;
    const path = file
      .slice(folder.length + 1)
      .split(sep)
      .join("/");
    const ofPackage = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0];
    found.add(ofPackage ?? path);
    for (let above = posix.dirname(ofPackage ?? path); above !== "."; above = posix.dirname(above))
      found.add(`${above}/package.json`);
  }
  return [...found];
}

function withoutExtension(file: string): string {
  return join(dirname(file), basename(file, extname(file)));
}
