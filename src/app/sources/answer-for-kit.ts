import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { ownModule } from "../../base/own-module.ts";
import { noteLoaded } from "./loaded-files.ts";

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
export function answerForKit(admit: (file: string, named: string) => void = () => undefined): {
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
