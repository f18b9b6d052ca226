import { KitError } from "../base/kit-error.ts";
import type { SessionStore } from "./contract.ts";

/** A store that has each method. Texts and workspaces stay optional: without them, kit makes less of a session. */
export type FullStore = SessionStore &
  Required<
    Pick<SessionStore, "listAll" | "deleteUntouched" | "claim" | "readText" | "pruneTexts" | "problem">
  >;

/**
 * Completes a store with what follows where it lacks a method. The methods are bound, so that a wrapper can spread the store and
 * replace some.
 */
export function toFullStore(store: SessionStore): FullStore {
  const existing = ofStores.get(store);
  if (existing !== undefined) return existing;
  const { keepText, workspaces } = store;
  const fullStore: FullStore = {
    append: store.append.bind(store),
    read: store.read.bind(store),
    info: store.info.bind(store),
    list: store.list.bind(store),
    delete: store.delete.bind(store),
    listAll: store.listAll?.bind(store) ?? cannotList,
    deleteUntouched: store.deleteUntouched?.bind(store) ?? (() => false),
    claim: store.claim?.bind(store) ?? (() => undefined),
    ...(keepText && { keepText: keepText.bind(store) }),
    readText: store.readText?.bind(store) ?? (() => undefined),
    pruneTexts: store.pruneTexts?.bind(store) ?? (() => 0),
    ...(workspaces && { workspaces }),
    problem: store.problem?.bind(store) ?? (() => undefined),
    close: store.close.bind(store),
  };
  ofStores.set(store, fullStore);
  return fullStore;
}

/** Services that share a store share its full store, and so the work that an outage keeps it from writing. */
const ofStores = new WeakMap<SessionStore, FullStore>();

function cannotList(): never {
  throw new KitError({
    code: "unavailable",
    message: "The session store of this project cannot list its sessions.",
    hint: "Add `listAll` and `deleteUntouched` to the store: see SessionStore.",
  });
}
