import { isBusy, toSqliteError } from "./sqlite-error.ts";

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

  /** Done at once, as a rule; a promise where it has to wait. */
  run(write: () => void): void | Promise<void> {
    if (this.#waiting.length === 0 && isDone(write)) return;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ write, since: performance.now(), resolve, reject });
      if (this.#waiting.length === 1) setTimeout(() => this.#goOn(), retryMs);
    });
  }

  /** Those that wait, until one finds the file locked still. */
  #goOn(): void {
    for (const next of [...this.#waiting]) {
      try {
        const { write, since } = next;
        if (isDone(write, performance.now() - since < patienceMs)) next.resolve();
        else break;
      } catch (error) {
        next.reject(error);
      }
      this.#waiting.shift();
    }
    if (this.#waiting.length > 0) setTimeout(() => this.#goOn(), retryMs);
  }
}

/** False for a write that may be tried again. */
function isDone(write: () => void, mayWait = true): boolean {
  try {
    write();
    return true;
  } catch (error) {
    if (mayWait && isBusy(error)) return false;
    throw toSqliteError(error);
  }
}
