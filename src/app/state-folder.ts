import { accessSync, constants, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { KitError } from "../base/kit-error.ts";
import { assertNoLinkOut } from "../files/find-place.ts";
import { systemObstacle } from "../files/obstacle.ts";
import { makeFolderSync } from "../files/replace-file.ts";

/**
 * The folder for kit's own files of a project, made when it is missing, and ignored by Git.
 *
 * Throws `unavailable` where it cannot be made or written, with what keeps it from that, and `forbidden` where it, or what kit keeps in
 * it, is a link out of the project: a repository that is cloned may bring one along.
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
  for (const below of [".kit", ".kit/engine"]) {
    assertNoLinkOut(
      root,
      namesIn(join(root, below)).map((name) => `${below}/${name}`),
    );
  }
  return folder;
}

function ignoreInGit(folder: string): void {
  try {
    writeFileSync(join(folder, ".gitignore"), "*\n", { flag: "wx" });
  } catch (error) {
    // One that is there says what its owner wants.
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return;
    // A full disk may have let the name pass and not the line in it.
    rmSync(join(folder, ".gitignore"), { force: true });
    throw error;
  }
}

/** For what could not be written in the state folder. */
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
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
