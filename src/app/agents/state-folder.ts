import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The folder for kit's own files of a project, made when it is missing, and ignored by Git. */
export function stateFolder(root: string): string {
  const folder = join(root, ".kit");
  mkdirSync(folder, { recursive: true });
  try {
    writeFileSync(join(folder, ".gitignore"), "*\n", { flag: "wx" });
  } catch (error) {
    // One that is there says what its owner wants.
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
  return folder;
}
