import assert from "node:assert/strict";
import type { SessionEntry, SessionKey } from "../protocol/session-entry.ts";
import type { WorkspaceStore } from "../protocol/workspace-store.ts";
import type { SessionStore } from "./contract.ts";

const key: SessionKey = { agent: "writer", instance_id: "pr-7", session: "default" };
const other: SessionKey = { ...key, session: "other" };
const entry: SessionEntry = {
  version: 1,
  type: "message",
  operation_id: "op_1",
  message: { role: "user", content: [{ type: "text", text: "a" }], timestamp: "2026-11-20T10:00:00.000Z" },
};
const piece = (text: string): Uint8Array => new TextEncoder().encode(text);

/** The promises about workspaces; for stores that support them. */
export const workspaceChecks: Readonly<Record<string, (store: SessionStore) => Promise<void>>> = {
  "a committed workspace and its pieces are returned unchanged, and others are not affected": withWorkspaces(
    async (workspaces) => {
      assert.equal(await workspaces.read(key), undefined);
      assert.equal(await workspaces.readPiece(key, "a"), undefined);
      const bytes = Uint8Array.from({ length: 100_000 }, (_, index) => index % 256);
      await workspaces.writePiece(key, "a", bytes);
      await workspaces.writePiece(key, "a", bytes);
      await workspaces.writePiece(other, "a", piece("of another session"));
      await workspaces.commit(key, { expected: 0, manifest: '{"é": 1}', pieces: ["a"] });
      assert.deepEqual(await workspaces.read(key), { version: 1, manifest: '{"é": 1}' });
      assert.deepEqual(Uint8Array.from((await workspaces.readPiece(key, "a")) ?? []), bytes);
      assert.equal(await workspaces.read(other), undefined);
    },
  ),
  "a commit at another version is a conflict, and changes nothing": withWorkspaces(async (workspaces) => {
    const conflict = { code: "conflict" };
    await assert.rejects(workspaces.commit(key, { expected: 1, manifest: "none", pieces: [] }), conflict);
    await workspaces.writePiece(key, "a", piece("a"));
    await workspaces.commit(key, { expected: 0, manifest: "one", pieces: ["a"] });
    await assert.rejects(workspaces.commit(key, { expected: 0, manifest: "two", pieces: [] }), conflict);
    await assert.rejects(workspaces.commit(key, { expected: 2, manifest: "two", pieces: [] }), conflict);
    assert.deepEqual(await workspaces.read(key), { version: 1, manifest: "one" });
    assert.notEqual(await workspaces.readPiece(key, "a"), undefined);
    const both = await Promise.allSettled(
      ["left", "right"].map((manifest) => workspaces.commit(key, { expected: 1, manifest, pieces: ["a"] })),
    );
    assert.deepEqual(both.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
    assert.equal((await workspaces.read(key))?.version, 2);
  }),
  "a commit removes pieces that it does not name, of its own session only": withWorkspaces(
    async (workspaces) => {
      for (const each of [key, other])
        for (const name of ["a", "b"]) await workspaces.writePiece(each, name, piece(name));
      await workspaces.commit(key, { expected: 0, manifest: "one", pieces: ["b"] });
      assert.equal(await workspaces.readPiece(key, "a"), undefined);
      assert.notEqual(await workspaces.readPiece(key, "b"), undefined);
      assert.notEqual(await workspaces.readPiece(other, "a"), undefined);
    },
  ),
  "a removed workspace starts again at version 0": withWorkspaces(async (workspaces) => {
    await workspaces.writePiece(key, "a", piece("a"));
    await workspaces.commit(key, { expected: 0, manifest: "one", pieces: ["a"] });
    await workspaces.remove(key);
    assert.equal(await workspaces.read(key), undefined);
    assert.equal(await workspaces.readPiece(key, "a"), undefined);
    await assert.rejects(workspaces.commit(key, { expected: 1, manifest: "two", pieces: [] }), {
      code: "conflict",
    });
    await workspaces.commit(key, { expected: 0, manifest: "new", pieces: [] });
  }),
  "deleting a session deletes its workspace in the same step, and no other workspace": withWorkspaces(
    async (workspaces, store) => {
      for (const remove of [
        () => store.delete(key),
        async () => assert.equal((await store.deleteUntouched?.(key, Date.now() + 60_000)) ?? true, true),
      ]) {
        for (const each of [key, other]) {
          const expected = (await store.info(each))?.position ?? 0;
          await store.append({ key: each, expected, entries: [entry] });
          await workspaces.remove(each);
          await workspaces.writePiece(each, "a", piece("a"));
          await workspaces.commit(each, { expected: 0, manifest: "one", pieces: ["a"] });
        }
        await store.deleteUntouched?.(key, 1);
        assert.notEqual(await workspaces.read(key), undefined);
        await remove();
        assert.equal(await workspaces.read(key), undefined);
        assert.equal(await workspaces.readPiece(key, "a"), undefined);
        assert.notEqual(await workspaces.readPiece(other, "a"), undefined);
      }
    },
  ),
  "a commit with a fence lower than the claimed one is refused": withWorkspaces(async (workspaces, store) => {
    await workspaces.commit(key, { expected: 0, manifest: "one", pieces: [], fence: 3 });
    await store.claim?.(key, 5);
    const stale = { code: "lease_lost" };
    await assert.rejects(
      workspaces.commit(key, { expected: 1, manifest: "stale", pieces: [], fence: 4 }),
      stale,
    );
    await assert.rejects(
      workspaces.commit(other, { expected: 0, manifest: "stale", pieces: [], fence: 4 }),
      stale,
    );
    await workspaces.commit(key, { expected: 1, manifest: "two", pieces: [], fence: 5 });
    assert.equal((await workspaces.read(key))?.manifest, "two");
  }),
  "a commit under the lease of a run is compared with the run's fence, whoever owns the instance":
    withWorkspaces(async (workspaces, store) => {
      if (store.claim === undefined) return;
      const lease_on = { agent: "", instance_id: "run-1" };
      await store.claim(lease_on, 2);
      await store.claim(key, 9);
      await workspaces.commit(key, { expected: 0, manifest: "one", pieces: [], fence: 2, lease_on });
      await store.claim(lease_on, 3);
      await assert.rejects(
        workspaces.commit(key, { expected: 1, manifest: "stale", pieces: [], fence: 2, lease_on }),
        { code: "lease_lost" },
      );
      await workspaces.commit(key, { expected: 1, manifest: "two", pieces: [], fence: 3, lease_on });
      assert.equal((await workspaces.read(key))?.manifest, "two");
    }),
};

/** A store that keeps no workspaces promises nothing about them. */
function withWorkspaces(
  check: (workspaces: WorkspaceStore, store: SessionStore) => Promise<void>,
): (store: SessionStore) => Promise<void> {
  return async (store) => {
    if (store.workspaces !== undefined) await check(store.workspaces, store);
  };
}
