import { isBusy, type StoreFaults } from "../../../sqlite/sqlite-fault.ts";
import { openFile, rollback } from "../../../sqlite/statements.ts";

/** A lock that the system itself lets go when its process ends, in whatever way. */
export interface ProcessLock {
  readonly isHeld: boolean;
  /** Whether it is held now. False when a process that lives holds it, frozen or not. */
  tryHold(): boolean;
  release(): void;
  close(): void;
}

/**
 * SQLite's own lock of a file (fcntl, LockFileEx), through a transaction that is never written: it works
 * where a process number does not, between containers and after a restart of one.
 */
export function createProcessLock(file: string | undefined, faults: StoreFaults): ProcessLock {
  const database = openFile(file ?? ":memory:", { timeoutMs: 0 });
  return {
    get isHeld() {
      return database.isTransaction;
    },
    tryHold() {
      if (database.isTransaction) return true;
      try {
        database.exec("BEGIN EXCLUSIVE");
        return true;
      } catch (error) {
        if (isBusy(error)) return false;
        throw faults.toError(error);
      }
    },
    release() {
      rollback(database);
    },
    close: () => database.close(),
  };
}
