import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { stateFolder } from "../../app/state-folder.ts";
import { KitError } from "../../base/kit-error.ts";
import { makeFolderSync } from "../../files/make-folder.ts";
import { isAlive } from "../running-server.ts";

/** Below the state folder: the engine of each `kit run` that runs a workflow, named after its process. */
const folderName = "terminals";

/**
 * Makes the folder for the engine of this process, so that 'kit runs signal' reaches the run from another terminal,
 * and removes those that killed processes have left. It goes when it is disposed of.
 */
function makeTerminalFolder(root: string): Disposable & { readonly path: string } {
  const folder = join(stateFolder(root), folderName);
  for (const pid of pidsIn(folder)) {
    if (!isAlive(pid)) rmSync(join(folder, String(pid)), { recursive: true, force: true });
  }
  const path = join(folder, String(process.pid));
  makeFolderSync(path);
  return {
    path,
    [Symbol.dispose]() {
      rmSync(path, { recursive: true, force: true });
    },
  };
}

/** The folder of this process; undefined where kit may keep nothing, as with KIT_STORE=memory: no command can signal the run then. */
export function openTerminalFolder(root: string): ReturnType<typeof makeTerminalFolder> | undefined {
  try {
    return makeTerminalFolder(root);
  } catch (error) {
    if (error instanceof KitError && error.code === "unavailable") return undefined;
    throw error;
  }
}

/** The engine folders of the `kit run` processes that run a workflow of this project now. */
export function terminalFolders(root: string): readonly string[] {
  const folder = join(root, ".kit", folderName);
  return pidsIn(folder)
    .filter((pid) => pid !== process.pid && isAlive(pid))
    .map((pid) => join(folder, String(pid)));
}

function pidsIn(folder: string): readonly number[] {
  try {
    return readdirSync(folder)
      .map(Number)
      .filter((pid) => Number.isInteger(pid) && pid > 0);
  } catch {
    // No workflow was ever run here.
    return [];
  }
}
