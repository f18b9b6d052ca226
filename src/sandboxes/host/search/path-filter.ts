import { compileGlob } from "../../../base/glob/glob.ts";
import { KitError } from "../../../base/kit-error.ts";

/** Compiles a glob of a search. Throws `invalid_request`, with the reason, for one that can match nothing. */
export function compileSearchGlob(pattern: string): (path: string) => boolean {
  const glob = compileGlob(pattern);
  if (glob.invalid === undefined) return glob.matches;
  throw new KitError({ code: "invalid_request", message: `The glob is not valid: ${glob.invalid}.` });
}

/** The same for a filter, where a glob without a slash looks at names alone: `*.ts` is in any folder. */
export function compileNameOrPathGlob(pattern: string): (path: string) => boolean {
  return compileSearchGlob(pattern.includes("/") ? pattern : `**/${pattern}`);
}
