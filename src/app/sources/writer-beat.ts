import { rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { endOrphans, processMark } from "../../processes/end-group.ts";
import { isAlive } from "../../processes/is-alive.ts";
import { stateFolder } from "../state-folder.ts";

/** A process that records what agents write. */
export interface WriterProcess {
  readonly pid: number;
  /** Tells the process from others with the same pid. */
  readonly process?: string;
}

export const thisProcess: Required<WriterProcess> = { pid: process.pid, process: processMark };

/** How often a process in which an agent works shows that it lives. */
const beatMs = 250;

/** How long after its last beat a process that was killed can have worked: its event loop can have been busy. */
const lifeMs = 1_000;

/** Beyond this, the clock of this process is not the one of the file system: it was set, or is another machine's. */
const clockDifferenceMs = 1_000;

/** Shows by the time of a file that this process lives while an agent works, and when others ended. */
export class WriterBeat {
  /** The project; undefined if nothing is stored on disk. */
  readonly #root: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Milliseconds to add to the time of this process for the one of the file system, which stamps what agents write. */
  #clockDifference = 0;

  constructor(root: string | undefined) {
    this.#root = root;
  }

  /** The time of the file system, in ms since 1970. */
  now(): number {
    return Date.now() + this.#clockDifference;
  }

  /** Returns the time of the file system. */
  begin(): number {
    this.#timer ??= setInterval(() => this.#write(), beatMs).unref();
    return this.#write(true);
  }

  end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#remove(process.pid);
  }

  /** Whether a process runs. In a container, the process after a crash often has the same pid. */
  isRunning({ pid, process: mark }: WriterProcess): boolean {
    return mark === processMark || (pid !== process.pid && isAlive(pid));
  }

  /**
   * Returns when a process that was killed can have written files for the last time: shortly after its last beat, or now if
   * one of its commands still ran, which is then ended.
   */
  lastOf({ pid, process: mark }: WriterProcess): number {
    const hadOrphans = mark !== undefined && endOrphans(mark);
    const beat = statSync(this.#fileOf(pid), { throwIfNoEntry: false })?.ctimeMs;
    const now = beat === undefined || hadOrphans ? this.#write(true) : 0;
    this.#remove(pid);
    this.#remove(process.pid);
    return Math.max(now, (beat ?? 0) + lifeMs);
  }

  #fileOf(pid: number): string {
    return join(this.#root ?? "", ".kit", `agent-writes.${pid}.beat`);
  }

  #write(isFirst = false): number {
    if (this.#root !== undefined) {
      try {
        const file = this.#fileOf(process.pid);
        if (isFirst) stateFolder(this.#root);
        writeFileSync(file, "1");
        const difference = statSync(file).ctimeMs - Date.now();
        this.#clockDifference = Math.abs(difference) > clockDifferenceMs ? difference : 0;
      } catch {
        // Without a beat, what this process can have written ends when the next one starts.
      }
    }
    return this.now();
  }

  #remove(pid: number): void {
    try {
      if (this.#root !== undefined) rmSync(this.#fileOf(pid), { force: true });
    } catch {
      // A file that stays says less than the line that ends the span.
    }
  }
}
