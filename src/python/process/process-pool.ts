import { longestTimerMs } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import { type PythonProcess, startPythonProcess } from "./python-process.ts";

export interface PoolOptions {
  readonly backend: string;
  /** Programs that compute at the same time. */
  readonly maxRunning: number;
  /** Processes there may be, those that wait for a function of the host included. */
  readonly maxProcesses: number;
  /** Milliseconds after which a process without work is ended. */
  readonly idleMs: number;
}

/** A process for one run, and the right to compute. */
export interface Lease {
  readonly process: PythonProcess;
  /** Lets others compute while the host works. */
  pause(): void;
  /** Waits for the right to compute. Rejects with the signal's reason. */
  resume(signal: AbortSignal): Promise<void>;
  /** Gives the process back; one that is not fit for another run is ended. */
  release(fit: boolean): void;
}

export interface ProcessPool {
  acquire(signal: AbortSignal): Promise<Lease>;
  close(): Promise<void>;
}

/** Keeps processes warm, and bounds how many compute at once. Who asks first is served first. */
export function createProcessPool(options: PoolOptions): ProcessPool {
  const running = createSlots(options.maxRunning);
  const places = createSlots(options.maxProcesses);
  const all = new Set<PythonProcess>();
  const idle: { readonly process: PythonProcess; readonly timer: NodeJS.Timeout }[] = [];
  let closed = false;

  const take = async (): Promise<PythonProcess> => {
    if (closed) throw closedError();
    for (let kept = idle.pop(); kept !== undefined; kept = idle.pop()) {
      clearTimeout(kept.timer);
      if (!kept.process.alive) continue;
      kept.process.ref();
      return kept.process;
    }
    const started = await startPythonProcess(options.backend);
    if (closed) {
      started.kill("closed");
      throw closedError();
    }
    all.add(started);
    void started.gone.then(() => all.delete(started));
    return started;
  };

  const giveBack = (process: PythonProcess, fit: boolean): void => {
    process.listen(undefined);
    // As many as can compute at once are worth keeping.
    if (!fit || !process.alive || closed || idle.length >= options.maxRunning) {
      process.kill("closed");
      return;
    }
    process.unref();
    const timer = setTimeout(
      () => {
        idle.splice(idle.indexOf(entry), 1);
        process.kill("closed");
      },
      Math.min(options.idleMs, longestTimerMs),
    );
    timer.unref();
    const entry = { process, timer };
    idle.push(entry);
  };

  return {
    async acquire(signal) {
      if (closed) throw closedError();
      await places.take(signal);
      let process: PythonProcess;
      try {
        await running.take(signal);
      } catch (error) {
        places.give();
        throw error;
      }
      try {
        process = await take();
      } catch (error) {
        running.give();
        places.give();
        throw error;
      }
      let holds = true;
      let released = false;
      const pause = (): void => {
        if (holds) running.give();
        holds = false;
      };
      return {
        process,
        pause,
        async resume(resumeSignal) {
          await running.take(resumeSignal);
          // It may have ended in the very moment in which its turn came.
          if (released) running.give();
          else holds = true;
        },
        release(fit) {
          released = true;
          pause();
          giveBack(process, fit);
          places.give();
        },
      };
    },
    async close() {
      closed = true;
      for (const { timer } of idle.splice(0)) clearTimeout(timer);
      for (const process of all) {
        process.ref();
        process.kill("closed");
      }
      await Promise.all([...all].map((process) => process.gone));
    },
  };
}

function closedError(): KitError {
  return new KitError({ code: "unavailable", message: "Python was closed." });
}

interface Slots {
  take(signal: AbortSignal): Promise<void>;
  give(): void;
}

function createSlots(count: number): Slots {
  let free = count;
  const line: (() => void)[] = [];
  return {
    async take(signal) {
      signal.throwIfAborted();
      if (free > 0) {
        free -= 1;
        return;
      }
      await new Promise<void>((resolve, reject) => {
        const leave = (): void => {
          line.splice(line.indexOf(enter), 1);
          reject(signal.reason);
        };
        const enter = (): void => {
          signal.removeEventListener("abort", leave);
          resolve();
        };
        signal.addEventListener("abort", leave, { once: true });
        line.push(enter);
      });
    },
    give() {
      const next = line.shift();
      if (next === undefined) free += 1;
      else next();
    },
  };
}
