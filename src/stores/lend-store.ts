import type { SessionStore } from "./contract.ts";

/** The same store for somebody who is not to close it: whoever opened it does. */
export function lendStore(store: SessionStore): SessionStore {
  return {
    append: (request) => store.append(request),
    read: (key, after) => store.read(key, after),
    info: (key) => store.info(key),
    list: (filter) => store.list(filter),
    delete: (key) => store.delete(key),
    ...(store.problem === undefined ? {} : { problem: () => store.problem?.() }),
    close: () => undefined,
  };
}
