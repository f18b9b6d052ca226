import { existsSync, readFileSync } from "node:fs";
import * as nodeModule from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { attempt } from "../base/attempt.ts";
import { KitError } from "../base/kit-error.ts";

export interface PeerUse {
  /** The folder of the project: kit must load the copy that the project's code imports. */
  readonly from: string | undefined;
  /** The feature that needs the package, as the beginning of a sentence. */
  readonly what: string;
  /** The package to install. */
  readonly packages: readonly string[];
}

/**
 * Imports a package, or a part of it (`"@langchain/core/messages"`), from the project, else from kit's dependencies. Throws
 * `unavailable` with the command that installs it.
 */
export async function loadPeer<Module>(name: string, use: PeerUse): Promise<Module> {
  for (const folder of [use.from, import.meta.dirname]) {
    const file = folder === undefined ? undefined : findModule(name, folder);
    if (file !== undefined) return (await import(pathToFileURL(file).href)) as Module;
  }
  throw new KitError({
    code: "unavailable",
    message: `${use.what} needs a package that is not installed: ${packageOf(name)}.`,
    hint: `Run: npm install ${use.packages.join(" ")}`,
  });
}

/** Loads the packages of a backend once for each project. After a failure the next call tries again: they may be installed by then. */
export function oncePerProject<Loaded>(
  load: (projectRoot: string | undefined) => Promise<Loaded>,
): (projectRoot: string | undefined) => Promise<Loaded> {
  const loaded = new Map<string | undefined, Promise<Loaded>>();
  return (projectRoot) => {
    const known = loaded.get(projectRoot);
    if (known !== undefined) return known;
    const loading = load(projectRoot);
    loaded.set(projectRoot, loading);
    loading.catch(() => loaded.delete(projectRoot));
    return loading;
  };
}

/** The file that `import name` of a module in that folder means; `require` would find another build of a package. */
function findModule(name: string, folder: string): string | undefined {
  const root = packageOf(name);
  const manifest = attempt(() =>
    nodeModule.findPackageJSON(root, pathToFileURL(join(folder, "package.json"))),
  );
  if (manifest === undefined) return undefined;
  const { exports, module, main } = JSON.parse(readFileSync(manifest, "utf8")) as {
    readonly exports?: unknown;
    readonly module?: string;
    readonly main?: string;
  };
  const part = `.${name.slice(root.length)}`;
  const target =
    exports === undefined
      ? (module ?? main ?? "index.js")
      : pickTarget(part === "." && !hasParts(exports) ? exports : partOf(exports, part));
  const file = target === undefined ? undefined : join(dirname(manifest), target);
  return file !== undefined && existsSync(file) ? file : undefined;
}

const conditions = new Set(["node", "import", "module-sync", "default"]);

function pickTarget(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return undefined;
  for (const [condition, inner] of Object.entries(value)) {
    const target = conditions.has(condition) ? pickTarget(inner) : undefined;
    if (target !== undefined) return target;
  }
  return undefined;
}

function hasParts(exports: unknown): boolean {
  return (
    typeof exports === "object" && exports !== null && Object.keys(exports).some((key) => key.startsWith("."))
  );
}

function partOf(exports: unknown, part: string): unknown {
  return typeof exports === "object" && exports !== null && Object.hasOwn(exports, part)
    ? Reflect.get(exports, part)
    : undefined;
}

function packageOf(name: string): string {
  return name
    .split("/")
    .slice(0, name.startsWith("@") ? 2 : 1)
    .join("/");
}
