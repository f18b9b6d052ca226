import type { AppendRequest, SessionStore } from "../../stores/contract.ts";
import { SqliteSessionStore } from "../../stores/sqlite/sqlite-store.ts";

/** A process that ends at one of its appends: nothing that it does from then on has an effect. */
export interface DoomedProcess {
  readonly store: SessionStore;
  /** Whether it has ended: its tools then do nothing any more. */
  readonly dead: boolean;
  /** Appends that it has made. */
  readonly appends: number;
  /** Resolves when it ends. */
  readonly end: Promise<void>;
}

export interface Doom {
  /** Which append it ends at, from 1; one past the last never comes. */
  readonly at: number;
  /** Whether that append still reaches the disk. */
  readonly when: "before" | "after";
}

/** Opens a real SQLite file as a process that ends as `doom` says; whoever waits for it then waits forever. */
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
        // A process that ends during one write sees none of its entries.
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
