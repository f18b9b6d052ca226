import { lstat, open, readdir, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { forbidden, hasCode, invalid } from "../../files/file-error.ts";
import { canHoldFolders, folderFlags, heldPath } from "../../files/walk.ts";
import { withPlace } from "./with-place.ts";
import type { View } from "./workspace.ts";
import { toWorkspacePath } from "./workspace-path.ts";

/** Removes a file or a link; a folder with all in it when `recursive` is set. Never the root. */
export async function remove(view: View, path: string, recursive: boolean): Promise<void> {
  if (toWorkspacePath(view, path) === "") {
    throw forbidden("The workspace itself cannot be removed.");
  }
  await withPlace(view, path, {
    end: "keep-link",
    async work(place) {
      const stats = await lstat(place.entry);
      if (!stats.isDirectory()) await unlink(place.entry);
      else if (recursive) await removeFolder(place.entry);
      else throw invalid(`${place.path} is a folder; removing it takes recursive.`);
    },
  });
}

/** Empties a folder that is held open, so that nothing it is swapped for is emptied instead. */
async function removeFolder(path: string): Promise<void> {
  const handle = canHoldFolders() ? await open(path, folderFlags) : undefined;
  const held = handle === undefined ? path : heldPath(handle.fd);
  try {
    for (const entry of await readdir(held, { withFileTypes: true })) {
      // A folder that became a link since it was listed fails to open; a link is only ever unlinked.
      if (entry.isDirectory()) await removeFolder(join(held, entry.name));
      else await unlink(join(held, entry.name)).catch(ignoreGone);
    }
  } finally {
    await handle?.close();
  }
  await rmdir(path).catch(ignoreGone);
}

function ignoreGone(error: unknown): void {
  if (!hasCode(error, "ENOENT")) throw error;
}
