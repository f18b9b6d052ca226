import { realpathSync } from "node:fs";
import { registerHooks } from "node:module";
import { basename, dirname, extname, join, posix, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { folded } from "../../agents/policy/protected-paths.ts";
import { createUlid } from "../../base/id.ts";
import { ownModule } from "../../base/own-package.ts";

/** How the files of one project are resolved while its app is open. */
export interface SourceHooks {
  /** From now on each file of the project is imported anew, with all that it imports of the project. */
  renew(): void;
  /** The files of the project that were imported since the last `renew`: also what source files import. */
  files(): readonly string[];
  deregister(): void;
}

/**
 * Resolves what the files of a project import: `kit` where it is not installed, and after `renew` the
 * project's own files under new addresses, because Node keeps a module for good under its old one.
 */
export function followSources(root: string, admit: (file: string, specifier: string) => void): SourceHooks {
  const kit = resolveKitImports(admit);
  const folder = `${pathToFileURL(realpathSync(root)).href}/`;
  let generation: string | undefined;
  const files = new Set<string>();
  const own = registerHooks({
    resolve(specifier, context, nextResolve) {
      const found = nextResolve(specifier, context);
      const isOwn = found.url.startsWith(folder) && !found.url.includes("/node_modules/");
      // In an output of `kit build`, kit lies in the project's folder, and stays one copy.
      if (!isOwn || found.url.startsWith(kitTop)) return found;
      files.add(fileURLToPath(found.url));
      return generation === undefined ? found : { ...found, url: withGeneration(found.url, generation) };
    },
  });
  return {
    renew() {
      generation = createUlid();
      files.clear();
    },
    files: () => [...files],
    deregister() {
      own.deregister();
      kit.deregister();
    },
  };
}

/** The folder of kit's own code. */
const kitTop = new URL(".", ownModule("index")).href;

function withGeneration(address: string, generation: string): string {
  const url = new URL(address);
  url.searchParams.set("kit-reload", generation);
  return url.href;
}

/**
 * Lets a project's files import `kit` and its entries where the package is not installed: kit may run
 * from elsewhere (npx, a global install, a checkout). An installed kit is preferred.
 *
 * Every file is shown to `admit` before it is loaded, with the name that it was asked for by: what that throws,
 * the import fails with.
 *
 * TypeScript whose package.json says nothing of `type` is taken for a module, which is what Node would
 * find out after a warning on the terminal.
 */
export function resolveKitImports(admit: (file: string, specifier: string) => void = () => undefined): {
  deregister(): void;
} {
  return registerHooks({
    resolve(specifier, context, nextResolve) {
      let found: ReturnType<typeof nextResolve>;
      try {
        found = nextResolve(specifier, context);
      } catch (error) {
        const entry = /^kit(?:\/([a-z0-9/-]+))?$/.exec(specifier);
        if (entry === null) throw error;
        const folder = entry[1] === undefined ? "" : `${entry[1]}/`;
        return nextResolve(ownModule(`${folder}index`).href, context);
      }
      if (found.url.startsWith("file:")) {
        const file = fileURLToPath(found.url);
        admit(file, namedFile(specifier, context.parentURL) ?? file);
        noteLoaded(file);
      }
      return found.format == null && isTypeScript(found.url)
        ? { ...found, format: "module-typescript" }
        : found;
    },
  });
}

/** The path that an import names, before links are followed; undefined for a package. */
function namedFile(specifier: string, parent: string | undefined): string | undefined {
  if (!/^(?:\.{0,2}\/|file:)/.test(specifier)) return undefined;
  const address = URL.parse(specifier, parent ?? "file:///");
  return address?.protocol === "file:" ? fileURLToPath(address) : undefined;
}

function isTypeScript(address: string): boolean {
  return address.startsWith("file:") && /\.ts(\?|$)/.test(address) && !address.includes("/node_modules/");
}

/** The extensions that Node takes for code, beside files without an extension. */
const code = /^\.(?:[cm]?[jt]sx?|json|node|wasm)$/;

/** As it is called, by the name that disks compare. */
const files = new Map<string, string>();
/** Names without extension under which a file may be asked for: another one could come in its place. */
const stems = new Set<string>();

/** Notes a file that this process loads: modules are the process's, whoever imports them. */
function noteLoaded(file: string): void {
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
