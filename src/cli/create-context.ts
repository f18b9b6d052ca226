import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { CommandContext } from "./command.ts";
import { findRoot } from "./find-root.ts";
import type { GlobalOptions } from "./program.ts";
import { usageError } from "./report-error.ts";

/** Makes the context of a command from the options of every command. Throws `invalid_request` for a wrong `--cwd`. */
export function createContext(
  { json, config, cwd, env }: GlobalOptions,
  {
    startedIn,
    ...streams
  }: Pick<CommandContext, "output" | "input" | "signal" | "platform"> & { readonly startedIn: string },
): CommandContext {
  const folder = resolve(startedIn, cwd ?? ".");
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    throw usageError(`--cwd: ${cwd} is not a folder.`);
  }
  // A folder that `--cwd` names is the project; the current folder may lie inside of one.
  const root = cwd === undefined ? findRoot(folder) : folder;
  return { ...streams, json, configFile: config, envFile: env, cwd: folder, root };
}
