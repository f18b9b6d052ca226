import { readdir, readFile } from "node:fs/promises";
import { builtinModules } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { filesOfModules, ownModule, startedModules } from "../base/own-package.ts";
import { type Bundler, type OutputFiles, textFile } from "./bundler.ts";

/** The folder of kit in an output. */
export const kitFolder = "kit";

/** kit's own package.json, as far as a build reads it. */
export interface KitManifest {
  readonly version: string;
  readonly peerDependencies: Readonly<Record<string, string>>;
  /**
   * Packages that kit loads if they are installed, but that are not peer dependencies: npm would compare them with
   * the versions that other packages need.
   */
  readonly kit: { readonly optionalPackages: Readonly<Record<string, string>> };
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
}

const kitRoot = fileURLToPath(new URL("../", ownModule("index")));

export async function readKitManifest(): Promise<KitManifest> {
  return JSON.parse(await readFile(join(kitRoot, "package.json"), "utf8"));
}

/** The paths of kit's public entries, without extension: `index`, `stores/sqlite/index`. */
function entriesOf({ exports }: KitManifest): readonly string[] {
  return Object.values(exports).flatMap((target) =>
    typeof target === "string" ? [] : [target.default.replace(/^\.\/dist\/|\.js$/g, "")],
  );
}

const bundles = new Map<boolean, Promise<OutputFiles>>();

/** The result of `bundleKit`, cached for the process: kit does not change while it runs. */
export async function kitFiles(
  bundler: Bundler,
  manifest: KitManifest,
  withTesting: boolean,
): Promise<OutputFiles> {
  const known = bundles.get(withTesting) ?? bundleKit(bundler, manifest, { withTesting });
  bundles.set(withTesting, known);
  return await known;
}

/**
 * kit with its dependencies, as the files of a folder. All public entries are in one bundle, so that every importer
 * gets the same copy of each class; the modules of kit's processes and threads keep their paths. Optional packages
 * are not bundled.
 */
async function bundleKit(
  bundler: Bundler,
  manifest: KitManifest,
  { withTesting }: { readonly withTesting: boolean },
): Promise<OutputFiles> {
  const entries = entriesOf(manifest).filter((entry) => withTesting || entry !== "testing/index");
  const optional = [...optionalPackages(manifest), ...builtinModules];
  const bundle = await bundler.rolldown({
    cwd: kitRoot,
    input: Object.fromEntries(
      [...entries, ...startedModules].map((path) => [path, fileURLToPath(ownModule(path))]),
    ),
    platform: "node",
    transform: { target: "es2024" },
    external: (specifier) =>
      specifier.startsWith("node:") ||
      optional.some((name) => specifier === name || specifier.startsWith(`${name}/`)),
    // Warnings about kit's packages are for their authors.
    logLevel: "silent",
    experimental: { attachDebugInfo: "none" },
  });
  const files: OutputFiles = new Map();
  try {
    const { output } = await bundle.generate({
      entryFileNames: "[name].js",
      chunkFileNames: "chunks/[name]-[hash].js",
      comments: { annotation: true, jsdoc: false, legal: true },
    });
    for (const item of output) {
      if (item.type === "chunk") files.set(`${kitFolder}/dist/${item.fileName}`, textFile(item.code));
    }
  } finally {
    await bundle.close();
  }
  for (const path of filesOfModules)
    files.set(`${kitFolder}/dist/${path}`, await readFile(new URL(path, ownModule("index"))));
  for (const name of ["kit.mjs"])
    files.set(`${kitFolder}/bin/${name}`, await readFile(join(kitRoot, "bin", name)));
  for (const [path, bytes] of await consoleFiles()) files.set(`${kitFolder}/dist/console/${path}`, bytes);
  const { version, peerDependencies, kit } = manifest;
  const own = { name: "kit", version, private: true, type: "module", peerDependencies, kit };
  files.set(`${kitFolder}/package.json`, textFile(`${JSON.stringify(own, null, 2)}\n`));
  return files;
}

/** Names of the packages that kit loads where a project has them. */
export function optionalPackages({ peerDependencies, kit }: KitManifest): readonly string[] {
  return [...Object.keys(peerDependencies), ...Object.keys(kit.optionalPackages)];
}

/** The built console of this kit; nothing if it was not built. */
async function consoleFiles(): Promise<ReadonlyMap<string, Uint8Array>> {
  const folder = join(kitRoot, "dist", "console");
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = new Map<string, Uint8Array>();
  for (const entry of entries) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    files.set(file.slice(folder.length + 1).replaceAll("\\", "/"), await readFile(file));
  }
  return files;
}
