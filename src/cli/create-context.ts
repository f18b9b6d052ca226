import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { CommandContext } from "./command.ts";
import { findRoot } from "./find-root.ts";
import type { GlobalOptions } from "./program.ts";
import { usageError } from "./report-error.ts";

/** What a command gets from the options of every command. Throws `invalid_request` for a wrong `--cwd`. */
export function createContext(
  { json, config, cwd, env }: GlobalOptions,
  {
    startedIn,
    ...given
  }: Pick<CommandContext, "output" | "input" | "signal"> & { readonly startedIn: string },
): CommandContext {
  const folder = resolve(startedIn, cwd ?? ".");
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    throw usageError(`--cwd: ${cwd} is not a folder.`);
  }
  // A folder that somebody names is the project; the one they happen to be in may lie inside of it.
  const root = cwd === undefined ? findRoot(folder) : folder;
  return { ...given, json, configFile: config, envFile: env, cwd: folder, root };
}
