import type { SessionStore } from "./contract.ts";

/** The same store for somebody who is not to close it: whoever opened it does. */
export function lendStore(store: SessionStore): SessionStore {
  const listAll = store.listAll?.bind(store);
  const deleteUntouched = store.deleteUntouched?.bind(store);
  return {
    append: (request) => store.append(request),
    read: (key, after) => store.read(key, after),
    info: (key) => store.info(key),
    list: (filter) => store.list(filter),
    delete: (key) => store.delete(key),
    ...(listAll === undefined ? {} : { listAll }),
    ...(deleteUntouched === undefined ? {} : { deleteUntouched }),
    ...(store.problem === undefined ? {} : { problem: () => store.problem?.() }),
    close: () => undefined,
  };
}
