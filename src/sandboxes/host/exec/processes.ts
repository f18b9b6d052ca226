import { readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { endGroup, graceMs, signalGroup } from "../../../processes/end-group.ts";

import type { RunningProcess } from "../../../processes/start-process.ts";

/** The processes of a command, to be ended together. */
export interface Processes {
  /** Asks them to end, or makes them. */
  signal(signal: "SIGTERM" | "SIGKILL"): void;
  /** Resolves when none is left, the program having ended. */
  end(): Promise<void>;
  /** Whether the program was started at all; what keeps it in may have failed before. */
  started(): Promise<boolean>;
}

/** Those of a program that is started as it is. */
export function groupOf({ pid, signal }: RunningProcess, mark: string): Processes {
  return {
    signal,
    async end() {
      if (pid !== undefined) await endGroup(pid, mark);
    },
    started: async () => true,
  };
}

/**
 * Those within the wall of bubblewrap. Its first process within ends with it, and with that one all others; the
 * processes outside see which it is on descriptor 3, and that the program was started.
 */
export function walledIn(wall: RunningProcess): Processes {
  const status = wall.pipe(3);
  let text = "";
  const read = Promise.withResolvers<void>();
  if (status !== undefined) {
    status.setEncoding("utf8");
    status.on("data", (part: string) => {
      text += part;
    });
    for (const event of ["close", "error"]) status.once(event, () => read.resolve());
  } else read.resolve();
  const first = (): number | undefined => {
    const found = /"child-pid": *(\d+)/.exec(text)?.[1];
    return found === undefined ? undefined : Number(found);
  };
  return {
    signal(signal) {
      const inner = first();
      // The wall itself is asked nothing: it would end before those in it have been asked.
      if (signal === "SIGTERM" && inner !== undefined) signalGroup(inner, signal);
      else wall.signal("SIGKILL");
    },
    async end() {
      const inner = first();
      const end = performance.now() + graceMs;
      while (inner !== undefined && isAlive(inner) && performance.now() < end) await setTimeout(1);
    },
    async started() {
      await read.promise;
      return text.includes('"exit-code"');
    },
  };
}

/** A process that has ended and that nobody has asked for yet is dead, and all that were in its namespace. */
function isAlive(id: number): boolean {
  try {
    const stat = readFileSync(`/proc/${id}/stat`, "latin1");
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2));
  } catch {
    return false;
  }
}
