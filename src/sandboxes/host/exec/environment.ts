import { realpathSync } from "node:fs";
import { delimiter, isAbsolute } from "node:path";
import { isInside } from "../workspace-path.ts";

export type Environment = Readonly<Record<string, string>>;

/** Variables that a program needs to find others, its user's settings, and its language; no others are passed on. */
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
 * An editor that does nothing lets `git rebase --continue` and the like take the text that is there.
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
  // A folder with files named like a repository's is none: its settings, which a model may have written, name
  // programs. Whoever means a bare repository says so with --git-dir.
  GIT_CONFIG_COUNT: "1",
  GIT_CONFIG_KEY_0: "safe.bareRepository",
  GIT_CONFIG_VALUE_0: "explicit",
};

const fallbackPath = "/usr/local/bin:/usr/bin:/bin";

/** Takes the variables of those names that are set. */
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

/** The environment of a command: `parts` over what goes for every command, the later ones winning. */
export function composeEnvironment(root: string, parts: readonly Environment[]): Record<string, string> {
  const environment: Record<string, string> = Object.assign({}, nonInteractive, ...parts);
  environment.PATH = outsidePath(environment.PATH ?? "", root) || fallbackPath;
  return environment;
}

/**
 * The folders of a search path that are absolute and outside of the workspace: else a file that a
 * model wrote there would be run in place of the program of that name.
 */
function outsidePath(path: string, root: string): string {
  return path
    .split(delimiter)
    .filter((folder) => isAbsolute(folder) && !isInside(root, folder) && !isInside(root, realPathOf(folder)))
    .join(delimiter);
}

function realPathOf(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    // There is no such folder, so nothing is run from it.
    return folder;
  }
}
