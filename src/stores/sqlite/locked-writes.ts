import { isBusy, type StoreFaults } from "../../sqlite/database-file.ts";

/** How long a write waits for another process's lock. */
const maxWaitMs = 5_000;
const retryMs = 10;

interface WaitingWrite {
  readonly write: () => void;
  readonly since: number;
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Queues writes while another process has locked the file, without blocking this process. Throws or rejects with
 * `unavailable` if the file cannot be written.
 */
export class LockedWrites {
  readonly #waiting: WaitingWrite[] = [];
  readonly #faults: StoreFaults;

  constructor(faults: StoreFaults) {
    this.#faults = faults;
  }

  /** Usually writes at once and returns nothing; returns a promise if the write has to wait. */
  run(write: () => void): void | Promise<void> {
    if (this.#waiting.length === 0 && this.#tryWrite(write)) return;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ write, since: performance.now(), resolve, reject });
      if (this.#waiting.length === 1) setTimeout(() => this.#retry(), retryMs);
    });
  }

  /** Runs waiting writes until one finds the file still locked. */
  #retry(): void {
    for (const next of [...this.#waiting]) {
      try {
        const { write, since } = next;
        if (this.#tryWrite(write, performance.now() - since < maxWaitMs)) next.resolve();
        else break;
      } catch (error) {
        next.reject(error);
      }
      this.#waiting.shift();
    }
    if (this.#waiting.length > 0) setTimeout(() => this.#retry(), retryMs);
  }

  /** Returns false if the file is locked and the write can be retried. */
  #tryWrite(write: () => void, mayWait = true): boolean {
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
