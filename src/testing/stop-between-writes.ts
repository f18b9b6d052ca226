import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";

/**
 * Stops a process (SIGSTOP) at a moment when it writes to no `*.db` below a folder. A process that is stopped during
 * a write keeps SQLite's lock until it wakes or dies, and no other process can take over its work.
 */
export async function stopBetweenWrites(pid: number, folder: string): Promise<void> {
  for (;;) {
    process.kill(pid, "SIGSTOP");
    // The signal is not delivered at once.
    await delay(20);
    const names = await readdir(folder, { recursive: true });
    const databases = names.filter((name) => name.endsWith(".db"));
    if (databases.every((name) => canWrite(join(folder, name)))) return;
    process.kill(pid, "SIGCONT");
    await delay(5);
  }
}

function canWrite(file: string): boolean {
  // Other writers release the lock within that time.
  const database = new DatabaseSync(file, { timeout: 500 });
  try {
    database.exec("BEGIN IMMEDIATE; ROLLBACK");
    return true;
  } catch {
    return false;
  } finally {
    database.close();
  }
}
