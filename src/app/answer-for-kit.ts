import { registerHooks } from "node:module";
import { ownModule } from "../base/own-module.ts";

/**
 * Lets a project's files import `kit` and its entries where the package is not installed: kit may run
 * from elsewhere (npx, a global install, a checkout). An installed kit is preferred.
 *
 * TypeScript whose package.json says nothing of `type` is taken for a module, which is what Node would
 * find out after a warning on the terminal.
 */
export function answerForKit(): { deregister(): void } {
  return registerHooks({
    resolve(specifier, context, nextResolve) {
      try {
        const found = nextResolve(specifier, context);
        return found.format == null && isTypeScript(found.url)
          ? { ...found, format: "module-typescript" }
          : found;
      } catch (error) {
        const entry = /^kit(?:\/([a-z0-9/-]+))?$/.exec(specifier);
        if (entry === null) throw error;
        const folder = entry[1] === undefined ? "" : `${entry[1]}/`;
        return nextResolve(ownModule(`${folder}index`).href, context);
      }
    },
  });
}

function isTypeScript(address: string): boolean {
  return address.startsWith("file:") && /\.ts(\?|$)/.test(address) && !address.includes("/node_modules/");
}
