import { expect, test } from "vitest";
import type { SessionStore } from "./contract.ts";
import { toFullStore } from "./full-store.ts";
import { InMemorySessionStore } from "./memory/memory-store.ts";

const key = { agent: "writer", instance_id: "1", session: "default" };

test("a store that lacks the optional methods removes nothing, finds nothing and has no problem; listing it says why it cannot", async () => {
  const inner = new InMemorySessionStore();
  const store: SessionStore = {
    append: (request) => inner.append(request),
    read: (...input) => inner.read(...input),
    info: (input) => inner.info(input),
    list: (input) => inner.list(input),
    delete: (input) => inner.delete(input),
    close: () => inner.close(),
  };
  const fullStore = toFullStore(store);
  expect(await fullStore.deleteUntouched(key, 0)).toBe(false);
  expect(await fullStore.readText("name")).toBeUndefined();
  expect(await fullStore.pruneTexts(0)).toBe(0);
  expect(fullStore.problem()).toBeUndefined();
  expect(fullStore.keepText).toBeUndefined();
  expect(() => fullStore.listAll({ limit: 1 })).toThrow(expect.objectContaining({ code: "unavailable" }));
});

test("the methods of a store of a class work apart from it, and each store has one full store", async () => {
  const store = new InMemorySessionStore();
  const { append, read, listAll } = toFullStore(store);
  await append({ key, expected: 0, entries: [] });
  expect(await read(key)).toEqual(await store.read(key));
  expect(await listAll({ limit: 1 })).toEqual(await store.listAll({ limit: 1 }));
  expect(toFullStore(store)).toBe(toFullStore(store));
});
