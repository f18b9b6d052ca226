import { closeSync, openSync, rmdirSync, unlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { hasCode } from "../../../files/obstacle.ts";
import { folderFlags, heldPath } from "../../../files/walk.ts";
import { inFolder } from "./held-files.ts";

/** How long kit waits for another Git process to give up its lock. */
const lockWaitMs = 2_000;

/** Calls `work` while kit has Git's lock of a file. Returns a sentence if another process keeps the lock. */
export async function withLock(
  folder: string,
  path: string,
  work: (held: string) => string | undefined,
): Promise<string | undefined> {
  const descriptor = openSync(folder, folderFlags);
  const held = heldPath(descriptor);
  try {
    // Git locks only files in the folder itself.
    if (path.includes("/")) return finishFolder(held, dirname(path), work(held));
    const lock = `${join(held, path)}.lock`;
    const end = performance.now() + lockWaitMs;
    while (!tryLock(lock)) {
      if (performance.now() > end)
        return `${path} of the repository is locked by another Git process, and was not taken over.`;
      await setTimeout(20);
    }
    try {
      return work(held);
    } finally {
      unlinkSync(lock);
    }
  } finally {
    closeSync(descriptor);
  }
}

export function tryLock(lock: string): boolean {
  try {
    closeSync(openSync(lock, "wx"));
    return true;
  } catch (error) {
    if (hasCode(error, "EEXIST")) return false;
    throw error;
  }
}

/** Removes the folders of a rebase that has ended, and of branches. */
function finishFolder(held: string, folder: string, note: string | undefined): string | undefined {
  const kept = /^(?:refs|logs)(?:\/(?:refs|heads|tags|remotes))*$/;
  try {
    for (let each = folder; each !== "." && !kept.test(each); each = dirname(each))
      inFolder(held, each, (entry) => rmdirSync(entry));
  } catch {
    // It has other files, or a command never made it.
  }
  return note;
}
