import { accessSync, constants, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { KitError } from "../../base/kit-error.ts";

/**
 * The folder for kit's own files of a project, made when it is missing, and ignored by Git.
 *
 * Throws `unavailable` where it cannot be made or written.
 */
export function stateFolder(root: string): string {
  const folder = join(root, ".kit");
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
    ignoreInGit(folder);
  } catch (error) {
    throw notWritable(error);
  }
  return folder;
}

function ignoreInGit(folder: string): void {
  try {
    writeFileSync(join(folder, ".gitignore"), "*\n", { flag: "wx" });
  } catch (error) {
    // One that is there says what its owner wants.
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
}

function notWritable(cause: unknown): KitError<"unavailable"> {
  return new KitError({
    code: "unavailable",
    message: "The folder .kit of this project cannot be written, and kit keeps there what has to last.",
    hint: "Make it writable. Without it, 'kit run' works with KIT_STORE=memory, and 'kit start' with --read-only.",
    cause,
  });
}
