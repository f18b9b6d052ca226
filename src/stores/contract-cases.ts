import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import type { ContractCase } from "../base/contract-case.ts";
import type { SessionEntry, SessionKey } from "../protocol/session-entry.ts";
import type { SessionListing, SessionStore } from "./contract.ts";
import { listChecks } from "./list-cases.ts";
import { workspaceChecks } from "./workspace-cases.ts";

/** The store under test. `reopen` opens the data of the last `create` again; for durable stores. */
export interface SessionStoreSubject {
  readonly create: () => SessionStore | Promise<SessionStore>;
  readonly reopen?: () => SessionStore | Promise<SessionStore>;
}

type Check = (store: SessionStore) => Promise<void>;

const key: SessionKey = { agent: "reviewer", instance_id: "pr-7", session: "default" };
const conflict = { code: "conflict" };

/**
 * The promises of `SessionStore` as tests for any runner; each opens a new store and closes it.
 *
 * @example
 * ```ts
 * import { test } from "node:test";
 * import { InMemorySessionStore } from "kit";
 * import { sessionStoreCases } from "kit/testing";
 *
 * for (const { name, run } of sessionStoreCases({ create: () => new InMemorySessionStore() })) test(name, run);
 * ```
 */
export function sessionStoreCases(subject: SessionStoreSubject): readonly ContractCase[] {
  const cases = Object.entries({ ...checks, ...listChecks, ...workspaceChecks }).map(([name, check]) => ({
    name,
    run: async () => {
      const store = await subject.create();
      try {
        await check(store);
      } finally {
        await store.close();
      }
    },
  }));
  const { reopen } = subject;
  if (reopen === undefined) return cases;
  const name = "appended entries survive closing the store and opening it again";
  return [...cases, { name, run: () => checkSurvival({ ...subject, reopen }) }];
}

async function checkSurvival(subject: Required<SessionStoreSubject>): Promise<void> {
  const first = await subject.create();
  await first.append({ key, expected: 0, entries: [entry("a"), entry("b")] });
  await first.close();
  const second = await subject.reopen();
  try {
    assert.deepEqual(await second.read(key), [entry("a"), entry("b")]);
    await second.append({ key, expected: 2, entries: [entry("c")] });
    assert.equal((await second.info(key))?.position, 3);
  } finally {
    await second.close();
  }
}

function entry(text: string): SessionEntry {
  const message = {
    role: "user",
    content: [{ type: "text", text }],
    timestamp: "2026-11-20T10:00:00.000Z",
  } as const;
  const repository = { commit: "3f2a1c9", dirty: true };
  return { version: 1, type: "message", operation_id: "op_1", message, repository };
}

const checks: Readonly<Record<string, Check>> = {
  "after a claim of an instance, appends with a lower fence are refused in all its sessions": async (
    store,
  ) => {
    if (store.claim === undefined) return;
    await store.claim(key, 7);
    await store.append({ key, expected: 0, entries: [entry("a")], fence: 7 });
    await store.claim(key, 9);
    await store.claim(key, 8);
    const lost = { code: "lease_lost" };
    const append = async (request: Omit<Parameters<SessionStore["append"]>[0], "entries">): Promise<void> =>
      await store.append({ ...request, entries: [entry("b")] });
    await assert.rejects(append({ key, expected: 1, fence: 8 }), lost);
    await assert.rejects(append({ key: { ...key, session: "new" }, expected: 0, fence: 8 }), lost);
    assert.equal((await store.info(key))?.position, 1);
    await append({ key, expected: 1, fence: 9 });
    await append({ key: { ...key, instance_id: "pr-8" }, expected: 0, fence: 1 });
    await assert.rejects(append({ key, expected: 1, fence: 9 }), conflict);
    await append({ key, expected: 2 });
  },

  "an append under the lease of a run is compared only with the claim of that run": async (store) => {
    if (store.claim === undefined) return;
    const lease_on = { agent: "", instance_id: "run_1" };
    await store.claim(key, 9);
    await store.claim(lease_on, 3);
    const append = async (expected: number, fence: number): Promise<void> =>
      await store.append({ key, expected, entries: [entry("a")], fence, lease_on });
    await append(0, 3);
    await append(1, 3);
    await store.claim(lease_on, 4);
    const lost = { code: "lease_lost" };
    await assert.rejects(append(2, 3), lost);
    const other = { ...key, session: "new" };
    await assert.rejects(
      async () => await store.append({ key: other, expected: 0, entries: [entry("a")], fence: 3, lease_on }),
      lost,
    );
    await append(2, 4);
    // The owner of the instance still appends under its own claim.
    await store.append({ key, expected: 3, entries: [entry("a")], fence: 9 });
    assert.equal((await store.info(key))?.position, 4);
  },

  "deleting the last session of an instance removes its fence": async (store) => {
    if (store.claim === undefined) return;
    const other = { ...key, session: "other" };
    const append = async (to: SessionKey, fence: number): Promise<void> =>
      await store.append({ key: to, expected: 0, entries: [entry("a")], fence });
    await store.claim(key, 7);
    await append(key, 7);
    await append(other, 7);
    await store.delete(key);
    await assert.rejects(append(key, 6), { code: "lease_lost" });
    await store.delete(other);
    await append(key, 6);
  },

  "retention removes the fence of a run with the last session of its agents": async (store) => {
    if (store.claim === undefined || store.deleteUntouched === undefined) return;
    const run = { agent: "", instance_id: "run_1" };
    const session = { agent: "one", instance_id: "run_1", session: "default" };
    const two = { ...session, agent: "two" };
    const append = async (to: SessionKey, fence: number): Promise<void> =>
      await store.append({ key: to, expected: 0, entries: [entry("a")], fence, lease_on: run });
    await store.claim(run, 7);
    await append(session, 7);
    await append(two, 7);
    assert.equal(await store.deleteUntouched(session, Date.now() + 60_000), true);
    await assert.rejects(append(session, 6), { code: "lease_lost" });
    // A user can delete a session while the run continues.
    await store.delete(two);
    await assert.rejects(append(two, 6), { code: "lease_lost" });
    await append(two, 7);
    assert.equal(await store.deleteUntouched(two, Date.now() + 60_000), true);
    await append(two, 6);
  },

  "texts are stored by name, once each, until they are pruned": async (store) => {
    if (store.keepText === undefined || store.readText === undefined) return;
    await store.keepText("a", "You mend the shop. 🦊\u2028");
    await store.keepText("a", "You mend the shop. 🦊\u2028");
    assert.equal(await store.readText("a"), "You mend the shop. 🦊\u2028");
    assert.equal(await store.readText("b"), undefined);
    assert.equal(await store.pruneTexts?.(Date.now() - 60_000), 0);
    assert.equal(await store.pruneTexts?.(Date.now() + 60_000), 1);
    assert.equal(await store.readText("a"), undefined);
  },

  "a session without appends is empty": async (store) => {
    assert.deepEqual(await store.read(key), []);
    assert.equal(await store.info(key), undefined);
  },

  "entries are returned unchanged and in order": async (store) => {
    await store.append({ key, expected: 0, entries: [entry("a"), entry("b 🦊\u2028")] });
    await store.append({ key, expected: 2, entries: [entry("c")] });
    assert.deepEqual(await store.read(key), [entry("a"), entry("b 🦊\u2028"), entry("c")]);
    assert.deepEqual(await store.read(key, 2), [entry("c")]);
    assert.equal((await store.info(key))?.position, 3);
  },

  "an append at another position is a conflict and writes nothing": async (store) => {
    await store.append({ key, expected: 0, entries: [entry("a")] });
    for (const expected of [0, 2, 7]) {
      const entries = [entry("x"), entry("y")];
      await assert.rejects(async () => store.append({ key, expected, entries }), conflict);
    }
    assert.deepEqual(await store.read(key), [entry("a")]);
  },

  "one of two writers at the same position succeeds": async (store) => {
    await store.append({ key, expected: 0, entries: [entry("a")] });
    const results = await Promise.allSettled(
      ["x", "y", "z"].map(async (text) => store.append({ key, expected: 1, entries: [entry(text)] })),
    );
    assert.equal(results.filter((result) => result.status === "fulfilled").length, 1);
    assert.equal((await store.read(key)).length, 2);
  },

  "a session accepts an input once, at any position and from any writer": async (store) => {
    const other = { ...key, session: "other" };
    const input = "op_1";
    await store.append({ key, expected: 0, entries: [entry("a"), entry("b")], input });
    await store.append({ key, expected: 2, entries: [entry("c")] });
    for (const expected of [0, 2, 3]) {
      const entries = [entry("x"), entry("y")];
      await assert.rejects(async () => store.append({ key, expected, entries, input }), conflict);
    }
    assert.deepEqual(await store.read(key), [entry("a"), entry("b"), entry("c")]);
    // A refused append changes nothing: the next writer continues at the same position with another input.
    await store.append({ key, expected: 3, entries: [entry("d")], input: "op_2" });
    await store.append({ key: other, expected: 0, entries: [entry("e")], input });
    await assert.rejects(
      async () => store.append({ key: other, expected: 1, entries: [entry("x")], input }),
      conflict,
    );
    await store.delete(key);
    await store.append({ key, expected: 0, entries: [entry("f")], input });
    assert.deepEqual(await store.read(key), [entry("f")]);
    assert.deepEqual(await store.read(other), [entry("e")]);
  },

  "one of several concurrent writers of the same input succeeds": async (store) => {
    await store.append({ key, expected: 0, entries: [entry("a")] });
    const results = await Promise.allSettled(
      [1, 1, 2].map(async (expected) =>
        store.append({ key, expected, entries: [entry("x")], input: "op_1" }),
      ),
    );
    assert.equal(results.filter((result) => result.status === "fulfilled").length, 1);
    assert.deepEqual(await store.read(key), [entry("a"), entry("x")]);
  },

  "agent, instance and session name together are the key": async (store) => {
    const otherSessions: SessionKey[] = [
      { ...key, agent: "writer" },
      { ...key, instance_id: "pr-8" },
      { ...key, session: "other" },
      { agent: "reviewer:pr-7", instance_id: "", session: "default" },
    ];
    await store.append({ key, expected: 0, entries: [entry("mine")] });
    for (const other of otherSessions) assert.deepEqual(await store.read(other), []);
  },

  "deleting a session deletes its descendants, and nothing else": async (store) => {
    const child = { ...key, session: "task-1" };
    const grandchild = { ...key, session: "task-2" };
    const bystander = { ...key, session: "other" };
    await store.append({ key, expected: 0, entries: [entry("a")] });
    await store.append({ key: child, expected: 0, entries: [entry("b")], parent: key });
    await store.append({ key: grandchild, expected: 0, entries: [entry("c")], parent: child });
    await store.append({ key: bystander, expected: 0, entries: [entry("d")] });
    assert.deepEqual((await store.info(child))?.parent, key);
    await store.delete(key);
    assert.deepEqual(
      (await store.list({ agent: "reviewer" })).map((info) => info.session),
      ["other"],
    );
    assert.deepEqual(await store.read(grandchild), []);
  },

  "an append to a deleted session is a conflict": async (store) => {
    await store.append({ key, expected: 0, entries: [entry("a")] });
    await store.append({ key, expected: 1, entries: [entry("b")] });
    await store.delete(key);
    await assert.rejects(async () => store.append({ key, expected: 2, entries: [entry("c")] }), conflict);
    assert.deepEqual(await store.read(key), []);
  },

  "sessions are listed per agent and per instance, oldest first": async (store) => {
    for (const [instance_id, session] of [
      ["1", "b"],
      ["2", "a"],
      ["1", "a"],
    ] as const) {
      await store.append({ key: { agent: "x", instance_id, session }, expected: 0, entries: [entry("a")] });
    }
    const namesOf = async (filter: Parameters<SessionStore["list"]>[0]): Promise<readonly string[]> =>
      (await store.list(filter)).map((info) => info.instance_id + info.session);
    assert.deepEqual(await namesOf({ agent: "x" }), ["1b", "2a", "1a"]);
    assert.deepEqual(await namesOf({ agent: "x", instance_id: "1" }), ["1b", "1a"]);
    assert.deepEqual(await namesOf({ agent: "y" }), []);
  },

  "all sessions are listed in pages by time of creation, with the time of their last append": async (
    store,
  ) => {
    const { listAll } = withRetention(store);
    const began = Date.now() - clockSkewMs;
    for (const agent of ["x", "y", "x2"]) {
      await store.append({ key: { ...key, agent }, expected: 0, entries: [entry("a")] });
    }
    await store.append({ key: { ...key, agent: "x" }, expected: 1, entries: [entry("b")] });
    const first = await listAll({ limit: 2 });
    assert.deepEqual(
      first.sessions.map(({ agent, position }) => [agent, position]),
      [
        ["x", 2],
        ["y", 1],
      ],
    );
    for (const { touched_at } of first.sessions) {
      const touched = Date.parse(touched_at);
      assert.ok(touched >= began && touched <= Date.now() + clockSkewMs, touched_at);
    }
    const cursor = first.next_cursor;
    assert.ok(cursor !== undefined);
    // Sessions deleted meanwhile do not shorten the next page.
    await store.delete({ ...key, agent: "y" });
    const second = await listAll({ limit: 2, cursor });
    assert.deepEqual(
      second.sessions.map(({ agent }) => agent),
      ["x2"],
    );
    assert.equal(second.next_cursor, undefined);
    await assert.rejects(async () => listAll({ limit: 2, cursor: "no such" }), { code: "invalid_request" });
  },

  "pages can be filtered by agent and instance, and sorted newest first": async (store) => {
    const { listAll } = withRetention(store);
    for (const [agent, instance_id] of [
      ["x", "1"],
      ["y", "1"],
      ["x", "2"],
      ["x", "3"],
    ] as const)
      await store.append({ key: { ...key, agent, instance_id }, expected: 0, entries: [entry("a")] });
    const instances = async (listing: Omit<SessionListing, "limit">): Promise<string> => {
      const listed: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await listAll({ ...listing, limit: 2, cursor });
        for (const { agent, instance_id } of page.sessions) listed.push(agent + instance_id);
        cursor = page.next_cursor;
      } while (cursor !== undefined);
      return listed.join(" ");
    };
    assert.equal(await instances({ order: "newest" }), "x3 x2 y1 x1");
    assert.equal(await instances({ agent: "x" }), "x1 x2 x3");
    assert.equal(await instances({ agent: "x", order: "newest" }), "x3 x2 x1");
    assert.equal(await instances({ agent: "x", instance_id: "2" }), "x2");
    assert.equal(await instances({ instance_id: "1" }), "x1 y1");
    assert.equal(await instances({ agent: "z" }), "");
  },

  "retention keeps a session if it or a descendant has a newer append": async (store) => {
    const { listAll, deleteUntouched } = withRetention(store);
    const child = { ...key, session: "task-1" };
    const bystander = { ...key, session: "other" };
    await store.append({ key, expected: 0, entries: [entry("a")] });
    const [parent] = (await listAll({ limit: 10 })).sessions;
    assert.ok(parent !== undefined);
    const before = Date.parse(parent.touched_at) + 1;
    await setTimeout(5);
    await store.append({ key: child, expected: 0, entries: [entry("b")], parent: key });
    await store.append({ key: bystander, expected: 0, entries: [entry("c")] });
    assert.equal(await deleteUntouched(key, before), false);
    assert.deepEqual(await store.read(key), [entry("a")]);
    const later = Date.now() + clockSkewMs;
    assert.equal(await deleteUntouched(key, later), true);
    assert.equal(await deleteUntouched(key, later), false);
    assert.deepEqual(
      (await store.list({ agent: key.agent })).map(({ session }) => session),
      ["other"],
    );
    assert.deepEqual(await store.read(child), []);
    await assert.rejects(async () => store.append({ key, expected: 1, entries: [entry("d")] }), conflict);
    await store.append({ key, expected: 0, entries: [entry("e")] });
    assert.deepEqual(await store.read(key), [entry("e")]);
  },

  "an append before the deletion by retention keeps its session": async (store) => {
    const { listAll, deleteUntouched } = withRetention(store);
    await store.append({ key, expected: 0, entries: [entry("a")] });
    const [session] = (await listAll({ limit: 10 })).sessions;
    assert.ok(session !== undefined);
    await setTimeout(5);
    const append = store.append({ key, expected: 1, entries: [entry("b")] });
    const deletion = deleteUntouched(key, Date.parse(session.touched_at) + 1);
    const [appended, deleted] = await Promise.allSettled([append, deletion]);
    // Either call can be first, but an acknowledged entry is never lost.
    const isKept = appended.status === "fulfilled";
    assert.deepEqual(deleted, { status: "fulfilled", value: !isKept });
    assert.deepEqual(await store.read(key), isKept ? [entry("a"), entry("b")] : []);
  },
};

/** A store on another machine can have another clock. */
const clockSkewMs = 60_000;

function withRetention(store: SessionStore): Pick<Required<SessionStore>, "listAll" | "deleteUntouched"> {
  const { listAll, deleteUntouched } = store;
  assert.ok(
    listAll !== undefined && deleteUntouched !== undefined,
    "The store has no `listAll`, so retention does not support it.",
  );
  return { listAll: listAll.bind(store), deleteUntouched: deleteUntouched.bind(store) };
}
