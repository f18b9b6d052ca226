import { isBusy, type StoreFaults } from "../../sqlite/database-file.ts";

/** How long another process's lock is waited for. */
const patienceMs = 5_000;
const retryMs = 10;

interface WaitingWrite {
  readonly write: () => void;
  readonly since: number;
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Writes that find the file locked by another process wait in line, and this process goes on meanwhile. Throws
 * `unavailable`, or rejects with it, where the file cannot be written.
 */
export class LockedWrites {
  readonly #waiting: WaitingWrite[] = [];
  readonly #faults: StoreFaults;

  constructor(faults: StoreFaults) {
    this.#faults = faults;
  }

  /** Done at once, as a rule; a promise where it has to wait. */
  run(write: () => void): void | Promise<void> {
    if (this.#waiting.length === 0 && this.#isDone(write)) return;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ write, since: performance.now(), resolve, reject });
      if (this.#waiting.length === 1) setTimeout(() => this.#goOn(), retryMs);
    });
  }

  /** Runs waiting writes until one finds the file still locked. */
  #goOn(): void {
    for (const next of [...this.#waiting]) {
      try {
        const { write, since } = next;
        if (this.#isDone(write, performance.now() - since < patienceMs)) next.resolve();
        else break;
      } catch (error) {
        next.reject(error);
      }
      this.#waiting.shift();
    }
    if (this.#waiting.length > 0) setTimeout(() => this.#goOn(), retryMs);
  }

  /** False for a write that may be tried again. */
  #isDone(write: () => void, mayWait = true): boolean {
    try {
      write();
      this.#faults.passed();
      return true;
    } catch (error) {
      if (mayWait && isBusy(error)) return false;
      throw this.#faults.toError(error);
    }
  }
}
