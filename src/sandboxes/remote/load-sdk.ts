import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { KitError } from "../../base/kit-error.ts";

/**
 * A vendor's package, which a project installs when it uses the vendor: the project's own, else the one beside kit.
 * Throws `unavailable` with the command that installs it.
 */
export async function loadSdk<Module>(name: string, root: string): Promise<Module> {
  let cause: unknown;
  for (const from of [pathToFileURL(join(root, "package.json")).href, import.meta.url]) {
    try {
      return toModule(await import(pathToFileURL(createRequire(from).resolve(name)).href));
    } catch (error) {
      if (!isMissing(error, name)) throw notLoaded(name, error);
      cause = error;
    }
  }
  throw new KitError({
    code: "unavailable",
    message: `The package ${name} is not installed.`,
    hint: `Run: npm install ${name}`,
    cause,
  });
}

/** A package that is no ES module has its exports in the default one. */
function toModule<Module>(loaded: { readonly default?: unknown }): Module {
  const names = Object.keys(loaded);
  const inside = loaded.default;
  const isWrapped = names.length <= 2 && typeof inside === "object" && inside !== null;
  return (isWrapped ? inside : loaded) as Module;
}

function isMissing(error: unknown, name: string): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return (
    (code === "MODULE_NOT_FOUND" || code === "ERR_MODULE_NOT_FOUND") &&
    error instanceof Error &&
    error.message.includes(`'${name}'`)
  );
}

const notLoaded = (name: string, cause: unknown): KitError =>
  new KitError({
    code: "unavailable",
    message: `The package ${name} cannot be loaded.`,
    hint: `Run: npm install ${name}`,
    cause,
  });
