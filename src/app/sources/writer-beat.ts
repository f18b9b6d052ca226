import { rmSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { endOrphans, processMark } from "../../processes/end-group.ts";
import { isAlive } from "../../processes/is-alive.ts";
import { startProcess } from "../../processes/start-process.ts";
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

/** Without its witness, how long after its last beat a killed process can have worked: its event loop can have been busy. */
const lifeMs = 1_000;

/** The witness of a process: its input ends with the process, and if the process was at work then, it stamps the second file. */
const witness = 'read -r line; [ ! -e "$1" ] || : > "$2"';

/** Beyond this, the clock of this process is not the one of the file system: it was set, or is another machine's. */
const clockDifferenceMs = 1_000;

/** Shows by the time of a file that this process lives while an agent works, and when others ended. */
export class WriterBeat {
  /** The project; undefined if nothing is stored on disk. */
  readonly #root: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #hasWitness = false;
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
    const now = this.#write(true);
    this.#startWitness();
    return now;
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
   * Returns when a process that was killed can have written files for the last time: when its witness saw its end, or shortly
   * after its last beat; now if one of its commands still ran, which is then ended.
   */
  lastOf({ pid, process: mark }: WriterProcess): number {
    const hadOrphans = mark !== undefined && endOrphans(mark);
    const beat = statSync(this.#fileOf(pid), { throwIfNoEntry: false })?.ctimeMs;
    const end = statSync(this.#fileOf(pid, "end"), { throwIfNoEntry: false })?.ctimeMs;
    const now = beat === undefined || hadOrphans ? this.#write(true) : 0;
    this.#remove(pid);
    this.#remove(process.pid);
    const isSeen = beat !== undefined && end !== undefined && end >= beat;
    return Math.max(now, isSeen ? end : (beat ?? 0) + lifeMs);
  }

  #fileOf(pid: number, kind: "beat" | "end" = "beat"): string {
    return join(this.#root ?? "", ".kit", `agent-writes.${pid}.${kind}`);
  }

  #startWitness(): void {
    if (this.#hasWitness || this.#root === undefined) return;
    this.#hasWitness = true;
    const files = [resolve(this.#fileOf(process.pid)), resolve(this.#fileOf(process.pid, "end"))];
    const args = ["-c", witness, "sh", ...files];
    try {
      const started = startProcess({ program: "/bin/sh", args, cwd: "/", env: {}, hasInput: true });
      // It writes nothing, and each pipe is a file handle.
      for (const output of [started.stdout, started.stderr]) output.destroy();
      started.unref();
    } catch {
      // Without a witness, as when no process or file handle is left, the last beat tells.
    }
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
      if (this.#root === undefined) return;
      for (const kind of ["beat", "end"] as const) rmSync(this.#fileOf(pid, kind), { force: true });
    } catch {
      // A file that stays says less than the line that ends the span.
    }
  }
}
