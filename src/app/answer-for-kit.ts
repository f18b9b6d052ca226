import { registerHooks } from "node:module";
import { extname } from "node:path";

/**
 * Lets a project's files import `kit` and its entries where the package is not installed: kit may run
 * from elsewhere (npx, a global install, a checkout). An installed kit is preferred.
 */
export function answerForKit(): { deregister(): void } {
  const extension = extname(import.meta.url);
  return registerHooks({
    resolve(specifier, context, nextResolve) {
      try {
        return nextResolve(specifier, context);
      } catch (error) {
        const entry = /^kit(?:\/([a-z0-9/-]+))?$/.exec(specifier);
        if (entry === null) throw error;
        const folder = entry[1] === undefined ? "" : `${entry[1]}/`;
        return nextResolve(new URL(`../${folder}index${extension}`, import.meta.url).href, context);
      }
    },
  });
}
