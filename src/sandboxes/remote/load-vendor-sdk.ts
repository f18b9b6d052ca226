import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { KitError } from "../../base/kit-error.ts";

interface SdkDetails {
  /** The version to install, if the registry's latest version is another package. */
  readonly version?: string;
  /** A name that the vendor's package exports and another package of the same name does not. */
  readonly exports?: string;
}

/**
 * Imports a vendor's package from the project, or from the installation of kit. Throws `unavailable` with the
 * command that installs it.
 */
export async function loadSdk<Module>(
  name: string,
  root: string,
  { version, exports }: SdkDetails = {},
): Promise<Module> {
  const hint = `Run: npm install ${name}${version === undefined ? "" : `@${version}`}`;
  let message = `The package ${name} is not installed.`;
  let cause: unknown;
  for (const from of [pathToFileURL(join(root, "package.json")).href, import.meta.url]) {
    try {
      const module = toModule<object>(await import(pathToFileURL(createRequire(from).resolve(name)).href));
      if (exports === undefined || exports in module) return module as Module;
      message = `The installed package ${name} is not the one that kit needs: it does not export ${exports}.`;
    } catch (error) {
      cause = error;
      if (isMissing(error, name)) continue;
      message = `The package ${name} cannot be loaded.`;
      break;
    }
  }
  throw new KitError({ code: "unavailable", message, hint, cause });
}

/**
 * Returns a function that does work at a vendor. The first work opens the account, the next one again if that failed;
 * errors of work that are not kit's own go through `toRemote`.
 */
export function atVendor<Account>(
  open: () => Promise<Account>,
  toRemote: (account: Account, error: unknown) => Error,
): <Value>(work: (account: Account) => Promise<Value>) => Promise<Value> {
  let opening: Promise<Account> | undefined;
  return async (work) => {
    opening ??= open().catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    const account = await opening;
    try {
      return await work(account);
    } catch (error) {
      throw error instanceof KitError ? error : toRemote(account, error);
    }
  };
}

/** A CommonJS package has its exports in `default`. */
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
