import { availableParallelism } from "node:os";
import { longestTimerMs } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import { type PythonProcess, startPythonProcess } from "./python-process.ts";

export interface PoolOptions {
  readonly backend: string;
  /** The most programs that compute at the same time. */
  readonly maxRunning: number;
  /** The most processes, including those with a waiting program that is too large to be parked. */
  readonly maxProcesses: number;
  /** Milliseconds after which an idle process is ended. */
  readonly idleMs: number;
}

/** The right of one run to compute, and its process. */
export interface Lease {
  /** Changes after a `resume` that returned a snapshot. */
  readonly process: PythonProcess;
  /**
   * Lets other runs compute during a host call. If another run needs a process, the pool calls `park`, which removes the
   * program from this process as a snapshot, or returns `undefined` if the program has to stay.
   */
  pause(park: () => Promise<Uint8Array | undefined>): void;
  /**
   * Waits for the right to compute. Returns the snapshot of a parked program, to be loaded into `process`. Rejects with the
   * signal's reason.
   */
  resume(signal: AbortSignal): Promise<Uint8Array | undefined>;
  /** Returns the process to the pool; a process that is not fit for another run is ended. */
  release(fit: boolean): void;
}

export interface ProcessPool {
  /** Aborted by `close`, with the error for the aborted runs. */
  readonly closing: AbortSignal;
  acquire(signal: AbortSignal): Promise<Lease>;
  close(): Promise<void>;
}

/** A waiting run: it needs a process, or has one and needs the right to compute. */
interface Waiter {
  readonly own: PythonProcess | undefined;
  start(process: PythonProcess): void;
  fail(error: unknown): void;
}

const processors = availableParallelism();

/** The limit for all parked programs, in bytes; further programs stay in their processes. */
const maxParkedBytes = 64 * 1024 * 1024;

/** Keeps idle processes ready, and limits how many programs compute at once. Serves runs in order. */
export function createProcessPool(options: PoolOptions): ProcessPool {
  return new Pool(options);
}

class Pool implements ProcessPool {
  readonly #options: PoolOptions;
  readonly #closing = new AbortController();
  readonly #line: Waiter[] = [];
  readonly #all = new Set<PythonProcess>();
  readonly #idle: { readonly process: PythonProcess; readonly timer: NodeJS.Timeout }[] = [];
  /** Functions that park the programs of processes waiting for the host, longest wait first. */
  readonly #parkable = new Map<PythonProcess, () => Promise<void>>();
  #computing = 0;
  #starting = 0;
  #parking = 0;
  #parkedBytes = 0;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  async acquire(signal: AbortSignal): Promise<Lease> {
    return this.#lease(await this.#wait(signal));
  }

  async close(): Promise<void> {
    const error = new KitError({ code: "unavailable", message: "Python was closed." });
    this.#closing.abort(error);
    for (const waiter of this.#line.splice(0)) waiter.fail(error);
    for (const { timer } of this.#idle.splice(0)) clearTimeout(timer);
    for (const process of this.#all) {
      process.ref();
      process.kill("closed");
    }
    await Promise.all([...this.#all].map((process) => process.gone));
  }

  #lease(first: PythonProcess): Lease {
    let process = first;
    let holds: "turn" | "process" | "snapshot" | "nothing" = "turn";
    let snapshot: Uint8Array | undefined;
    let parked: Promise<void> | undefined;
    const forget = (): void => {
      this.#parkedBytes -= snapshot?.length ?? 0;
      snapshot = undefined;
    };
    return {
      get process() {
        return process;
      },
      pause: (park) => {
        this.#computing -= 1;
        holds = "process";
        this.#parkable.set(process, () => {
          parked = Promise.race([park(), process.gone.then(() => undefined)]).then((taken) => {
            if (taken === undefined || holds !== "process") return;
            holds = "snapshot";
            snapshot = taken;
            this.#parkedBytes += taken.length;
            this.#returnToPool(process, true);
          });
          return parked;
        });
        this.#serve();
      },
      resume: async (signal) => {
        this.#parkable.delete(process);
        await parked;
        parked = undefined;
        signal.throwIfAborted();
        const own = holds === "process" ? process : undefined;
        const given = await this.#wait(signal, own);
        if (holds === "nothing") {
          // The run was aborted at the moment of its turn.
          this.#computing -= 1;
          if (own === undefined) this.#returnToPool(given, true);
          this.#serve();
          signal.throwIfAborted();
        }
        process = given;
        holds = "turn";
        const taken = snapshot;
        forget();
        return taken;
      },
      release: (fit) => {
        const held = holds;
        holds = "nothing";
        this.#parkable.delete(process);
        forget();
        if (held === "turn") this.#computing -= 1;
        if (held === "turn" || held === "process") this.#returnToPool(process, fit);
        this.#serve();
      },
    };
  }

  #wait(signal: AbortSignal, own?: PythonProcess): Promise<PythonProcess> {
    return new Promise((resolve, reject) => {
      this.closing.throwIfAborted();
      signal.throwIfAborted();
      const leave = (): void => {
        this.#line.splice(this.#line.indexOf(waiter), 1);
        reject(signal.reason);
      };
      const waiter: Waiter = {
        own,
        start(process) {
          signal.removeEventListener("abort", leave);
          resolve(process);
        },
        fail(error) {
          signal.removeEventListener("abort", leave);
          reject(error);
        },
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#line.push(waiter);
      this.#serve();
    });
  }

  /** Starts waiting runs while there are turns and processes, and prepares processes for the next ones. */
  #serve(): void {
    while (this.#computing < this.#options.maxRunning) {
      // A run that waits for a process must not block a run that has its own.
      const warm = this.#idle.some(({ process }) => process.alive);
      const at = this.#line.findIndex(({ own }) => warm || own !== undefined);
      const next = this.#line[at];
      const process = next && (next.own ?? this.#takeIdle());
      if (process === undefined) break;
      this.#line.splice(at, 1);
      this.#computing += 1;
      next?.start(process);
    }
    const turns = this.#options.maxRunning - this.#computing;
    const needed = Math.min(turns, this.#line.filter(({ own }) => own === undefined).length);
    while (this.#starting + this.#parking < needed) if (!this.#makeRoom()) return;
  }

  /** Prefers parking a program, which takes a millisecond, over starting a process, which takes a quarter of a second. */
  #makeRoom(): boolean {
    const { maxProcesses, maxRunning } = this.#options;
    const count = this.#all.size + this.#starting;
    // More concurrent starts than processors only slow each other down.
    const mayStart = count < maxProcesses && this.#starting < processors;
    if (mayStart && count < Math.min(maxRunning, processors)) void this.#start();
    else if (this.#parkable.size > 0 && this.#parkedBytes < maxParkedBytes) void this.#park();
    else if (mayStart) void this.#start();
    else return false;
    return true;
  }

  async #start(): Promise<void> {
    this.#starting += 1;
    try {
      const process = await startPythonProcess(this.#options.backend);
      this.#all.add(process);
      void process.gone.then(() => {
        this.#all.delete(process);
        this.#forgetIdle(process);
        this.#serve();
      });
      this.#returnToPool(process, true);
    } catch (error) {
      const at = this.#line.findIndex(({ own }) => own === undefined);
      if (at !== -1) this.#line.splice(at, 1)[0]?.fail(error);
    } finally {
      this.#starting -= 1;
      this.#serve();
    }
  }

  async #park(): Promise<void> {
    const [[process, park] = []] = this.#parkable;
    if (process === undefined || park === undefined) return;
    this.#parkable.delete(process);
    this.#parking += 1;
    try {
      await park();
    } finally {
      this.#parking -= 1;
      this.#serve();
    }
  }

  #takeIdle(): PythonProcess | undefined {
    const at = this.#idle.findLastIndex(({ process }) => process.alive);
    const [kept] = at === -1 ? [] : this.#idle.splice(at, 1);
    clearTimeout(kept?.timer);
    kept?.process.ref();
    return kept?.process;
  }

  #returnToPool(process: PythonProcess, fit: boolean): void {
    process.listen(undefined);
    const { idleMs, maxRunning } = this.#options;
    // Keep at most as many idle processes as can compute at once.
    if (!fit || !process.alive || this.closing.aborted || this.#idle.length >= maxRunning) {
      process.kill("closed");
      return;
    }
    process.unref();
    const end = (): void => {
      this.#forgetIdle(process);
      process.kill("closed");
    };
    const timer = setTimeout(end, Math.min(idleMs, longestTimerMs));
    timer.unref();
    this.#idle.push({ process, timer });
  }

  #forgetIdle(process: PythonProcess): void {
    const at = this.#idle.findIndex((kept) => kept.process === process);
    if (at !== -1) clearTimeout(this.#idle.splice(at, 1)[0]?.timer);
  }
}
