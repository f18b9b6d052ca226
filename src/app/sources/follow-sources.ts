import { realpathSync } from "node:fs";
import { registerHooks } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createUlid } from "../../base/id.ts";
import { answerForKit } from "./answer-for-kit.ts";

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
export function followSources(root: string, admit: (file: string, named: string) => void): SourceHooks {
  const kit = answerForKit(admit);
  const folder = `${pathToFileURL(realpathSync(root)).href}/`;
  let generation: string | undefined;
  const files = new Set<string>();
  const own = registerHooks({
    resolve(specifier, context, nextResolve) {
      const found = nextResolve(specifier, context);
      if (!found.url.startsWith(folder) || found.url.includes("/node_modules/")) return found;
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

function withGeneration(address: string, generation: string): string {
  const url = new URL(address);
  url.searchParams.set("kit-reload", generation);
  return url.href;
}
