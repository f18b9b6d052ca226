import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SessionEntry, SessionKey } from "../protocol/session-entry.ts";
import type { SessionStore } from "./contract.ts";

const key: SessionKey = { agent: "reviewer", instance_id: "pr-7", session: "default" };

function entry(text: string): SessionEntry {
  const message = {
    role: "user",
    content: [{ type: "text", text }],
    timestamp: "2026-11-20T10:00:00.000Z",
  } as const;
  return { version: 1, type: "message", operation_id: "op_1", message };
}

/** The promises of `SessionStore`, as tests. `create` opens a store; `reopen` the same data again. */
export function sessionStoreContract(subject: {
  readonly name: string;
  readonly create: () => SessionStore | Promise<SessionStore>;
  readonly reopen?: () => SessionStore | Promise<SessionStore>;
}): void {
  describe(`${subject.name} as a session store`, () => {
    let store: SessionStore;
    beforeEach(async () => {
      store = await subject.create();
    });
    afterEach(async () => {
      await store.close();
    });

    test("a session that was never written is empty", async () => {
      expect(await store.read(key)).toEqual([]);
      expect(await store.info(key)).toBeUndefined();
    });

    test("entries come back in order, as they went in", async () => {
      await store.append({ key, expected: 0, entries: [entry("a"), entry("b 🦊\u2028")] });
      await store.append({ key, expected: 2, entries: [entry("c")] });
      expect(await store.read(key)).toEqual([entry("a"), entry("b 🦊\u2028"), entry("c")]);
      expect(await store.read(key, 2)).toEqual([entry("c")]);
      expect((await store.info(key))?.position).toBe(3);
    });

    test("an append at another position is a conflict and writes nothing", async () => {
      await store.append({ key, expected: 0, entries: [entry("a")] });
      for (const expected of [0, 2, 7]) {
        await expect(async () =>
          store.append({ key, expected, entries: [entry("x"), entry("y")] }),
        ).rejects.toMatchObject({
          code: "conflict",
        });
      }
      await expect(async () =>
        store.append({ key, expected: 0, entries: [entry("x")] }),
      ).rejects.toMatchObject({
        code: "conflict",
      });
      expect(await store.read(key)).toEqual([entry("a")]);
    });

    test("of two writers at one position exactly one wins", async () => {
      await store.append({ key, expected: 0, entries: [entry("a")] });
      const results = await Promise.allSettled(
        ["x", "y", "z"].map(async (text) => store.append({ key, expected: 1, entries: [entry(text)] })),
      );
      expect(results.filter((result) => result.status === "fulfilled")).toHaveLength(1);
      expect(await store.read(key)).toHaveLength(2);
    });

    test("agent, instance and session name together make the key", async () => {
      const others: SessionKey[] = [
        { ...key, agent: "writer" },
        { ...key, instance_id: "pr-8" },
        { ...key, session: "other" },
        { agent: "reviewer:pr-7", instance_id: "", session: "default" },
      ];
      await store.append({ key, expected: 0, entries: [entry("mine")] });
      for (const other of others) expect(await store.read(other)).toEqual([]);
    });

    test("deleting a session deletes the sessions below it, and nothing else", async () => {
      const child = { ...key, session: "task-1" };
      const grandchild = { ...key, session: "task-2" };
      const bystander = { ...key, session: "other" };
      await store.append({ key, expected: 0, entries: [entry("a")] });
      await store.append({ key: child, expected: 0, entries: [entry("b")], parent: key });
      await store.append({ key: grandchild, expected: 0, entries: [entry("c")], parent: child });
      await store.append({ key: bystander, expected: 0, entries: [entry("d")] });
      expect((await store.info(child))?.parent).toEqual(key);
      await store.delete(key);
      expect((await store.list({ agent: "reviewer" })).map((info) => info.session)).toEqual(["other"]);
      expect(await store.read(grandchild)).toEqual([]);
    });

    test("a writer of a deleted session is told so", async () => {
      await store.append({ key, expected: 0, entries: [entry("a")] });
      await store.append({ key, expected: 1, entries: [entry("b")] });
      await store.delete(key);
      await expect(async () =>
        store.append({ key, expected: 2, entries: [entry("c")] }),
      ).rejects.toMatchObject({
        code: "conflict",
      });
      expect(await store.read(key)).toEqual([]);
    });

    test("sessions are listed per agent and per instance, oldest first", async () => {
      for (const [instance_id, session] of [
        ["1", "b"],
        ["2", "a"],
        ["1", "a"],
      ] as const) {
        await store.append({ key: { agent: "x", instance_id, session }, expected: 0, entries: [entry("a")] });
      }
      expect((await store.list({ agent: "x" })).map((info) => info.instance_id + info.session)).toEqual([
        "1b",
        "2a",
        "1a",
      ]);
      expect((await store.list({ agent: "x", instance_id: "1" })).map((info) => info.session)).toEqual([
        "b",
        "a",
      ]);
      expect(await store.list({ agent: "y" })).toEqual([]);
    });

    test.skipIf(subject.reopen === undefined)(
      "what was appended is there after the store is opened again",
      async () => {
        await store.append({ key, expected: 0, entries: [entry("a"), entry("b")] });
        await store.close();
        store = await (subject.reopen ?? subject.create)();
        expect(await store.read(key)).toEqual([entry("a"), entry("b")]);
        await store.append({ key, expected: 2, entries: [entry("c")] });
        expect((await store.info(key))?.position).toBe(3);
      },
    );
  });
}
