import { KitError } from "../base/kit-error.ts";

/** The part of rolldown that kit uses; the package is loaded for builds only. */
export type Rolldown = typeof import("rolldown");
export type Parser = typeof import("rolldown/parseAst");

/** The tools of a build: the bundler of rolldown and its parser. */
export interface Bundler {
  readonly rolldown: Rolldown["rolldown"];
  readonly parseAst: Parser["parseAst"];
}

/** The version that kit is tested with; `kit build` accepts no other. */
const rolldownVersion = "1.2.19";

/** Loads rolldown from the project, otherwise from the folder in which kit is installed. Throws `unavailable` with the command that installs it. */
export async function loadBundler(): Promise<Bundler> {
  try {
    const [{ rolldown }, { parseAst }] = await Promise.all([import("rolldown"), import("rolldown/parseAst")]);
    return { rolldown, parseAst };
  } catch (error) {
    throw notInstalled(error);
  }
}

function notInstalled(cause: unknown): KitError {
  return new KitError({
    code: "unavailable",
    message: "kit build needs a package that is not installed: rolldown.",
    hint: `Run: npm install --save-dev --save-exact rolldown@${rolldownVersion}`,
    cause,
  });
}

/** One file of an output: its path below the output's folder, and its bytes. */
export type OutputFiles = Map<string, Uint8Array>;

export function textFile(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** A part of a project that the target does not support. */
export interface BuildProblem {
  /** Project-relative. */
  readonly path: string;
  /** Continues after the path: `src/agents/a.ts` + `cannot be loaded: …`. */
  readonly message: string;
  readonly hint: string;
}
