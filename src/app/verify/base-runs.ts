import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { Installed, TestRun } from "./workplace.ts";

/** A base, with all that a run of its tests depends on. */
export interface BaseOf extends Installed {
  readonly commit: string;
  /** The runner and the settings of its checkouts. */
  readonly settings: readonly unknown[];
}

const most = 8;
const longestMs = 60 * 60_000;

/**
 * The runs of all tests on a base, which several attempts at one task share. Only the memory of this process keeps them: what is judged
 * could write a file. A run without a test that passed is not kept, because packages may have been missing.
 */
export class BaseRuns {
  readonly #kept = new Map<string, { readonly run: TestRun; readonly at: number }>();

  /** The kept run; else the one that `make` makes. */
  async get(
    base: BaseOf,
    make: () => Promise<TestRun>,
  ): Promise<{ readonly run: TestRun; readonly isKept: boolean }> {
    const key = await keyOf(base);
    const kept = this.#kept.get(key);
    if (kept !== undefined && performance.now() - kept.at < longestMs) return { run: kept.run, isKept: true };
    const run = await make();
    if (run.timed_out || !run.cases.some(({ status }) => status === "passed")) return { run, isKept: false };
    this.#kept.delete(key);
    this.#kept.set(key, { run, at: performance.now() });
    for (const oldest of this.#kept.keys()) if (this.#kept.size > most) this.#kept.delete(oldest);
    return { run, isKept: false };
  }
}

/** Packages that are installed later make another base. */
async function keyOf({ top, prefix, commit, settings }: BaseOf): Promise<string> {
  const folders = [...new Set([top, join(top, prefix)])].flatMap((folder) =>
    ["node_modules", "node_modules/.package-lock.json", ".venv", "venv"].map((name) => join(folder, name)),
  );
  const times = await Promise.all(
    folders.map((path) =>
      stat(path).then(
        ({ mtimeMs }) => mtimeMs,
        () => 0,
      ),
    ),
  );
  return JSON.stringify([top, prefix, commit, settings, times]);
}
