import { statSync } from "node:fs";
import { hasCode } from "../files/file-error.ts";
import { makeFolderSync } from "../files/make-folder.ts";
import { systemObstacle } from "../files/obstacle.ts";
import { usageError } from "./report-error.ts";
import { truncate } from "./text/display-width.ts";

/** Makes the folder that somebody named on the line, or says why it cannot be one. */
export function makeNamedFolder(folder: string, asWritten: string): void {
  const name = truncate(asWritten, 60, "middle");
  try {
    const found = statSync(folder, { throwIfNoEntry: false });
    if (found?.isDirectory() === false)
      throw usageError(`${name} is ${found.isFile() ? "a file" : "no folder"}.`, "Name a folder.");
    makeFolderSync(folder);
  } catch (error) {
    const why = hasCode(error, "ENOENT") ? "no folder can be made there" : systemObstacle(error);
    if (why === undefined) throw error;
    throw usageError(`${name} cannot be made: ${why}.`, "Name a folder that can be made and written.");
  }
}
