import { accessSync, constants, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { attempt } from "../base/attempt.ts";
import { KitError } from "../base/kit-error.ts";
import { assertNoLinkOut } from "../files/find-place.ts";
import { systemObstacle } from "../files/obstacle.ts";
import { makeFolderSync } from "../files/replace-file.ts";

/**
 * Returns the folder for kit's files in a project, `.kit`. Creates it if it is missing, and makes Git ignore it.
 *
 * Throws `unavailable` with the reason if it cannot be created or written, and `forbidden` if it, or a file that kit stores in
 * it, is a link out of the project: a cloned repository can contain one.
 */
export function stateFolder(root: string): string {
  const folder = join(root, ".kit");
  assertNoLinkOut(root, [".kit"]);
  try {
    makeFolderSync(folder);
    accessSync(folder, constants.W_OK);
    ignoreInGit(folder);
  } catch (error) {
    throw stateFolderError(error);
  }
  // Kit checks the content of a workspace when it opens the workspace, not here.
  for (const subfolder of [".kit", ".kit/engine"]) {
    assertNoLinkOut(
      root,
      namesIn(join(root, subfolder)).map((name) => `${subfolder}/${name}`),
    );
  }
  return folder;
}

function ignoreInGit(folder: string): void {
  try {
    writeFileSync(join(folder, ".gitignore"), "*\n", { flag: "wx" });
  } catch (error) {
    // Keep an existing file: the user has written it.
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return;
    // On a full disk, the file can exist without its line.
    rmSync(join(folder, ".gitignore"), { force: true });
    throw error;
  }
}

/** Creates the error for a state folder that cannot be written. */
export function stateFolderError(cause: unknown): KitError<"unavailable"> {
  const reason = systemObstacle(cause);
  return new KitError({
    code: "unavailable",
    message: `The folder .kit of this project cannot be written${reason === undefined ? "" : ` (${reason})`}, and kit keeps there what has to last.`,
    hint: "Make it writable. Without it, 'kit run' works with KIT_STORE=memory, and 'kit start' with --read-only.",
    cause,
  });
}

function namesIn(folder: string): readonly string[] {
  return attempt(() => readdirSync(folder), []);
}
