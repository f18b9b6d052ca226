import type { AppendRequest, SessionStore } from "../../stores/contract.ts";
import { SqliteSessionStore } from "../../stores/sqlite/sqlite-store.ts";

/** A process that crashes at one of its appends: nothing that it does after that has an effect. */
export interface DoomedProcess {
  readonly store: SessionStore;
  /** Whether it has crashed: its tools must then do nothing. */
  readonly dead: boolean;
  /** Number of its appends. */
  readonly appends: number;
  /** Resolves when it crashes. */
  readonly end: Promise<void>;
}

export interface Doom {
  /** The append at which it crashes, from 1; 0 or a number above the last append for never. */
  readonly at: number;
  /** Whether it crashes before or after that append reaches the disk. */
  readonly when: "before" | "after";
}

/** Opens a real SQLite file as a process that crashes at `doom`; its pending and later calls never resolve. */
export function openDoomed(file: string, doom: Doom): DoomedProcess {
  const store = new SqliteSessionStore({ file });
  const { promise: end, resolve } = Promise.withResolvers<void>();
  let appends = 0;
  let dead = false;
  const never = new Promise<never>(() => undefined);
  const die = (): Promise<never> => {
    dead = true;
    store.close();
    resolve();
    return never;
  };
  const alive = <Value>(work: () => Value): Value | Promise<never> => (dead ? never : work());
  return {
    end,
    get dead() {
      return dead;
    },
    get appends() {
      return appends;
    },
    store: {
      async append(request: AppendRequest) {
        if (dead) return never;
        appends += 1;
        const isLast = appends === doom.at;
        if (isLast && doom.when === "before") return die();
        await store.append(request);
        // A process that crashes during an append never learns of its result.
        return isLast ? die() : dead ? never : undefined;
      },
      read: (key, after) => alive(() => store.read(key, after)),
      info: (key) => alive(() => store.info(key)),
      list: (filter) => alive(() => store.list(filter)),
      delete: (key) => alive(() => store.delete(key)),
      close: () => {
        if (!dead) store.close();
      },
    },
  };
}
