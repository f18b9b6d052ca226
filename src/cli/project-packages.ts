import { registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ownModule } from "../base/own-package.ts";

const roots = new Set<string>();
let isRegistered = false;

/**
 * From now on, a package that kit imports and that is not installed beside kit is loaded from this project: a
 * globally installed kit uses the providers, database drivers and telemetry packages of its project. Packages beside
 * kit win, because kit is tested with them.
 */
export function useProjectPackages(root: string): void {
  roots.add(pathToFileURL(join(root, "package.json")).href);
  if (isRegistered) return;
  isRegistered = true;
  const kit = new URL(".", ownModule("index")).href;
  registerHooks({
    resolve(specifier, context, nextResolve) {
      try {
        return nextResolve(specifier, context);
      } catch (error) {
        if (!isPackage(specifier) || context.parentURL?.startsWith(kit) !== true) throw error;
        for (const parentURL of roots) {
          try {
            return nextResolve(specifier, { ...context, parentURL });
          } catch {
            // The first failure is the clearer one: it names kit's own file.
          }
        }
        throw error;
      }
    },
  });
}

function isPackage(specifier: string): boolean {
  return /^(?:@[\w.-]+\/)?[\w-][\w.-]*(?:\/|$)/.test(specifier);
}
