import { realpathSync } from "node:fs";
import { delimiter, isAbsolute } from "node:path";
import { attempt } from "../../../base/attempt.ts";
import { isInside } from "../workspace-path.ts";

export type Environment = Readonly<Record<string, string>>;

/** Variables passed on by default: programs need them to find other programs, the user's settings and the language. */
export const basicNames: readonly string[] = [
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "LANG",
  "LANGUAGE",
  "LC_ALL",
  "LC_CTYPE",
  "TZ",
  "TMPDIR",
  // Variables that Windows programs need to start.
  "SystemRoot",
  "SystemDrive",
  "ComSpec",
  "PATHEXT",
  "TEMP",
  "TMP",
  "USERPROFILE",
  "APPDATA",
  "LOCALAPPDATA",
];

/**
 * Commands are non-interactive: no pager, editor, password prompt or colour.
 * The editor is `true`, so that `git rebase --continue` and the like accept the prepared text.
 */
export const nonInteractive: Environment = {
  TERM: "dumb",
  NO_COLOR: "1",
  PAGER: "cat",
  MANPAGER: "cat",
  GIT_PAGER: "cat",
  GIT_EDITOR: "true",
  EDITOR: "true",
  VISUAL: "true",
  GIT_TERMINAL_PROMPT: "0",
  GIT_ASKPASS: "true",
  SSH_ASKPASS: "true",
  // A model can write files that look like a bare repository, whose settings name programs to run. Git must not
  // discover such a folder; a bare repository needs --git-dir.
  GIT_CONFIG_COUNT: "1",
  GIT_CONFIG_KEY_0: "safe.bareRepository",
  GIT_CONFIG_VALUE_0: "explicit",
};

const fallbackPath = "/usr/local/bin:/usr/bin:/bin";

export function pickEnvironment(
  names: readonly string[],
  from: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const picked: Record<string, string> = {};
  for (const name of names) {
    const value = Object.hasOwn(from, name) ? from[name] : undefined;
    if (value !== undefined) picked[name] = value;
  }
  return picked;
}

/** Merges `parts` over the non-interactive defaults; later parts win. Removes the workspace from `PATH`. */
export function composeEnvironment(root: string, parts: readonly Environment[]): Record<string, string> {
  const environment: Record<string, string> = Object.assign({}, nonInteractive, ...parts);
  environment.PATH = outsidePath(environment.PATH ?? "", root) || fallbackPath;
  return environment;
}

/**
 * Keeps the absolute folders outside the workspace: otherwise a file that a model wrote could run in place of
 * the program of that name.
 */
function outsidePath(path: string, root: string): string {
  return path
    .split(delimiter)
    .filter((folder) => isAbsolute(folder) && !isInside(root, folder) && !isInside(root, realPathOf(folder)))
    .join(delimiter);
}

function realPathOf(folder: string): string {
  // The folder does not exist, so nothing runs from it.
  return attempt(() => realpathSync(folder), folder);
}
