import { readdirSync, readFileSync } from "node:fs";

/** Whether a process of this machine has a word in its command line, also one in isolation. Linux only. */
export function runsNow(word: string): boolean {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .some((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(word);
      } catch {
        return false;
      }
    });
}
