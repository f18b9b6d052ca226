import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stateFolder } from "../app/agents/state-folder.ts";

/** Where `kit start` says that it serves a project: for the commands that ask it. */
const fileName = "server.json";

/** Says where the server of a project listens, until disposed of. */
export async function announceServer(root: string, url: string): Promise<AsyncDisposable> {
  const file = join(stateFolder(root), fileName);
  writeFileSync(file, `${JSON.stringify({ url, pid: process.pid })}\n`);
  return {
    async [Symbol.asyncDispose]() {
      // A second server may have said so since: the file is then its own.
      if (readAnnouncement(root)?.pid === process.pid) rmSync(file, { force: true });
    },
  };
}

/** The address of the server that runs for a project; undefined when there is none. */
export function findRunningServer(root: string): string | undefined {
  const found = readAnnouncement(root);
  return found !== undefined && isAlive(found.pid) ? found.url : undefined;
}

function readAnnouncement(root: string): { readonly url: string; readonly pid: number } | undefined {
  try {
    const { url, pid }: { url?: unknown; pid?: unknown } = JSON.parse(
      readFileSync(join(root, ".kit", fileName), "utf8"),
    );
    return typeof url === "string" && typeof pid === "number" ? { url, pid } : undefined;
  } catch {
    // Missing, or cut off by a crash: nobody has said anything.
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
