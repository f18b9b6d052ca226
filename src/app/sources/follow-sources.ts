import { realpathSync } from "node:fs";
import { registerHooks } from "node:module";
import { basename, dirname, extname, join, posix, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { folded } from "../../agents/policy/protected-paths.ts";
import { createUlid } from "../../base/id.ts";
import { ownModule } from "../../base/own-package.ts";

/** The module resolution of one project while its app is open. */
export interface SourceHooks {
  /** Makes later imports load the project's files again, with everything that they import from the project. */
  renew(): void;
  /** The files of the project that were imported since the last `renew`, also by other source files. */
  files(): readonly string[];
  deregister(): void;
}

/**
 * Resolves the imports of a project's files: `kit` if it is not installed, and after `renew` the project's own files
 * under new addresses, because Node keeps the module of an address for ever.
 */
export function followSources(root: string, admit: (file: string, specifier: string) => void): SourceHooks {
  const kit = resolveKitImports(admit);
  const folder = `${pathToFileURL(realpathSync(root)).href}/`;
  let generation: string | undefined;
  const files = new Set<string>();
  const hooks = registerHooks({
    resolve(specifier, context, nextResolve) {
      const resolved = nextResolve(specifier, context);
      const isOwn = resolved.url.startsWith(folder) && !resolved.url.includes("/node_modules/");
      // In an output of `kit build`, kit is in the project's folder; do not load a second copy of it.
      if (!isOwn || resolved.url.startsWith(kitTop)) return resolved;
      files.add(fileURLToPath(resolved.url));
      return generation === undefined
        ? resolved
        : { ...resolved, url: withGeneration(resolved.url, generation) };
    },
  });
  return {
    renew() {
      generation = createUlid();
      files.clear();
    },
    files: () => [...files],
    deregister() {
      hooks.deregister();
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
 * Lets a project's files import `kit` and its entries even if the package is not installed: kit can run
 * from elsewhere (npx, a global install, a checkout). An installed kit is preferred.
 *
 * Calls `admit` with every file before it is loaded, and with the name in the import; an error of `admit` fails the
 * import.
 *
 * Loads TypeScript without a `type` in its package.json as a module; Node would do the same after a warning on the
 * terminal.
 */
export function resolveKitImports(admit: (file: string, specifier: string) => void = () => undefined): {
  deregister(): void;
} {
  return registerHooks({
    resolve(specifier, context, nextResolve) {
      let resolved: ReturnType<typeof nextResolve>;
      try {
        resolved = nextResolve(specifier, context);
      } catch (error) {
        const entry = /^kit(?:\/([a-z0-9/-]+))?$/.exec(specifier);
        if (entry === null) throw error;
        const folder = entry[1] === undefined ? "" : `${entry[1]}/`;
        return nextResolve(ownModule(`${folder}index`).href, context);
      }
      if (resolved.url.startsWith("file:")) {
        const file = fileURLToPath(resolved.url);
        admit(file, namedFile(specifier, context.parentURL) ?? file);
        noteLoaded(file);
      }
      return resolved.format == null && isTypeScript(resolved.url)
        ? { ...resolved, format: "module-typescript" }
        : resolved;
    },
  });
}

/** Returns the path that an import names, before links are resolved; undefined for a package. */
function namedFile(specifier: string, parent: string | undefined): string | undefined {
  if (!/^(?:\.{0,2}\/|file:)/.test(specifier)) return undefined;
  const address = URL.parse(specifier, parent ?? "file:///");
  return address?.protocol === "file:" ? fileURLToPath(address) : undefined;
}

function isTypeScript(address: string): boolean {
  return address.startsWith("file:") && /\.ts(\?|$)/.test(address) && !address.includes("/node_modules/");
}

/** The extensions that Node loads as code, in addition to files without an extension. */
const code = /^\.(?:[cm]?[jt]sx?|json|node|wasm)$/;

/** The loaded files: the file's name by its name in the form that disks compare. */
const files = new Map<string, string>();
/** Imported names without an extension: another file could replace the one that they resolve to. */
const stems = new Set<string>();

/** Records a file that this process loads: modules are shared by all importers of the process. */
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

/** Returns the relative paths of the loaded files below a folder, with the `package.json` above each; for packages only the folders. */
export function loadedBelow(folder: string): readonly string[] {
  const imported = new Set<string>();
  for (const file of files.values()) {
    if (!file.startsWith(`${folder}${sep}`)) continue;
    const path = file
      .slice(folder.length + 1)
      .split(sep)
      .join("/");
    const ofPackage = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0];
    imported.add(ofPackage ?? path);
    for (let parent = posix.dirname(ofPackage ?? path); parent !== "."; parent = posix.dirname(parent))
      imported.add(`${parent}/package.json`);
  }
  return [...imported];
}

function withoutExtension(file: string): string {
  return join(dirname(file), basename(file, extname(file)));
}
