import type { PassSteps } from "../pass-steps.ts";
import type { FileEntry } from "./file-entry.ts";
import { type BuildRest, createIndexBuild } from "./index-build.ts";

/** Where a new index is written: on this thread, or on one of its own. */
export interface BuildTarget {
  put(entries: readonly FileEntry[]): PassSteps<void>;
  finish(rest: BuildRest): PassSteps<void>;
  /** Ends the writing; without a `finish` before, what was written is removed. */
  close(): PassSteps<void>;
}

/** Writes on this thread. Its steps never wait. */
export function createDirectTarget(file: string): BuildTarget {
  const build = createIndexBuild(file);
  let isFinished = false;
  return {
    // biome-ignore lint/correctness/useYield: it has the shape of the other target
    *put(entries) {
      build.put(entries);
    },
    // biome-ignore lint/correctness/useYield: it has the shape of the other target
    *finish(rest) {
      build.finish(rest);
      isFinished = true;
    },
    // biome-ignore lint/correctness/useYield: it has the shape of the other target
    *close() {
      if (!isFinished) build.abandon();
    },
  };
}
