import { lstat, readdir, readFile, statfs } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { removeNow } from "../../sandboxes/host/wall/own-folders.ts";

const memory = "/dev/shm";
/** Room for files that the tests write. */
const spareBytes = 1024 ** 3;
/** No verdict takes so long. */
const oldestMs = 24 * 60 * 60_000;

export const checkoutPrefix = "kit-verify-";

/**
 * The folder in which a judge makes its checkouts, of so many bytes each: the memory of Linux if it has room, because a disk takes up to ten
 * seconds for 10,000 files. A person who sets TMPDIR decides it.
 */
export async function checkoutsFolder(bytes: number): Promise<string> {
  if (process.env.TMPDIR !== undefined || !(await runsProgramsInMemory())) return tmpdir();
  try {
    // No system cleans this folder: a judge that was killed leaves its checkout to the next one.
    await removeOld();
    const { bavail, bsize } = await statfs(memory);
    // A verdict has two checkouts at a time.
    const isRoomy = 2 * bytes + spareBytes <= Math.min(bavail * bsize, process.availableMemory() / 2);
    return isRoomy ? memory : tmpdir();
  } catch {
    return tmpdir();
  }
}

async function runsProgramsInMemory(): Promise<boolean> {
  const mounts = await readFile("/proc/self/mounts", "utf8").catch(() => "");
  const options = mounts.split("\n").findLast((line) => line.split(" ")[1] === memory);
  const [, , type, flags = ""] = options?.split(" ") ?? [];
  return type === "tmpfs" && !/\b(?:ro|noexec)\b/.test(flags);
}

async function removeOld(): Promise<void> {
  const { uid } = userInfo();
  for (const name of await readdir(memory)) {
    if (!name.startsWith(checkoutPrefix)) continue;
    const path = join(memory, name);
    const stats = await lstat(path).catch(() => undefined);
    if (stats?.uid === uid && Date.now() - stats.mtimeMs > oldestMs) await removeNow(path);
  }
}
