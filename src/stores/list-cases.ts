import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import type { SessionEntry, SessionKey, TouchedSession } from "../protocol/session-entry.ts";
import type { SessionListing, SessionStore } from "./contract.ts";

const timestamp = "2026-11-20T10:00:00.000Z";

function prompt(text: string): SessionEntry {
  const message = { role: "user", content: [{ type: "text", text }], timestamp } as const;
  return { version: 1, type: "message", operation_id: "op_1", message };
}

function answer(total: number | null, total_tokens = 10): SessionEntry {
  const cost = { input: total, output: total, cache_read: total, cache_write: total, total };
  const usage = { input: 1, output: 1, cache_read: 0, cache_write: 0, total_tokens, cost };
  const content = [{ type: "text", text: "Done." } as const];
  const message = {
    role: "assistant",
    content,
    timestamp,
    model: "m",
    usage,
    finish_reason: "stop",
  } as const;
  return { version: 1, type: "message", operation_id: "op_1", message };
}

function end(status: string, error?: { type: string; message: string; cause?: object }): SessionEntry {
  const value = { status, error };
  return { version: 1, type: "note", name: "operation_end", value, timestamp, operation_id: "op_1" };
}

const key = (instance_id: string, agent = "reviewer"): SessionKey => ({
  agent,
  instance_id,
  session: "default",
});
const failure = { type: "model_error", message: "The model refused." };

/** The promises about the summaries and filters of lists; for stores that keep a summary of each session. */
export const listChecks: Readonly<Record<string, (store: SessionStore) => Promise<void>>> = {
  "a listed session has the first words, the end of the last operation, and the sums of its model calls":
    withSummaries(async (store, list) => {
      const one = async (): Promise<Partial<TouchedSession>> => {
        const { title, state, error, cost, tokens } = (await list())[0] ?? {};
        return { title, state, error, cost, tokens };
      };
      await store.append({
        key: key("1"),
        expected: 0,
        entries: [prompt("  Refund\n\torder 7, ".concat("please ".repeat(20)))],
      });
      const title = "Refund order 7, please please please please please please please please please…";
      const idle = { title, state: "idle", error: undefined } as const;
      assert.deepEqual(await one(), { ...idle, cost: 0, tokens: 0 });
      await store.append({ key: key("1"), expected: 1, entries: [answer(0.25), answer(0.5, 32)] });
      assert.deepEqual(await one(), { ...idle, cost: 0.75, tokens: 42 });
      const cause = { name: "ProviderError", message: "Your credit is used up.\nBuy more.", status: 402 };
      await store.append({ key: key("1"), expected: 3, entries: [end("failed", { ...failure, cause })] });
      const words = { name: "ProviderError", message: "Your credit is used up." };
      const error = { ...failure, cause: words };
      assert.deepEqual(await one(), { ...idle, state: "failed", error, cost: 0.75, tokens: 42 });
      await store.append({ key: key("1"), expected: 4, entries: [prompt("Again")] });
      assert.deepEqual(await one(), { ...idle, cost: 0.75, tokens: 42 });
      await store.append({ key: key("1"), expected: 5, entries: [answer(null)] });
      assert.deepEqual(await one(), { ...idle, cost: null, tokens: 52 });
      await store.append({ key: key("1"), expected: 6, entries: [end("aborted")] });
      assert.deepEqual(await one(), { ...idle, state: "stopped", cost: null, tokens: 52 });
    }),

  "a refused append does not change the summary": withSummaries(async (store, list) => {
    await store.append({ key: key("1"), expected: 0, entries: [prompt("Hello"), answer(1)] });
    const before = await list();
    const refused = async (): Promise<void> =>
      await store.append({ key: key("1"), expected: 1, entries: [answer(5), end("failed", failure)] });
    await assert.rejects(refused, { code: "conflict" });
    assert.deepEqual(await list(), before);
    await store.append({ key: key("1"), expected: 2, entries: [answer(1)] });
    assert.equal((await list())[0]?.cost, 2);
  }),

  "sessions are found by words, state, time, key and parent, and counted over all pages": withSummaries(
    async (store, list) => {
      await store.append({ key: key("1"), expected: 0, entries: [prompt("Über 100% of_orders")] });
      await store.append({ key: key("2"), expected: 0, entries: [prompt("Refund"), end("failed", failure)] });
      const task = { ...key("2"), session: "task-1" };
      await store.append({ key: task, expected: 0, entries: [prompt("Look")], parent: key("2") });
      await store.append({ key: key("3", "writer"), expected: 0, entries: [prompt("Write")] });
      const found = async (listing: Partial<SessionListing>): Promise<string> =>
        (await list(listing)).map(({ instance_id, session }) => `${instance_id}/${session}`).join(" ");
      assert.equal(await found({ search: "refund" }), "2/default");
      assert.equal(await found({ search: "über 100% OF_" }), "1/default");
      assert.equal(await found({ search: "1_0" }), "");
      assert.equal(await found({ search: "\\" }), "");
      assert.equal(await found({ search: "WRITER" }), "3/default");
      assert.equal(await found({ state: "failed" }), "2/default");
      assert.equal(await found({ state: "idle" }), "1/default 2/task-1 3/default");
      assert.equal(await found({ parents_only: true }), "1/default 2/default 3/default");
      assert.equal(await found({ only: [key("3", "writer"), task, key("9")] }), "2/task-1 3/default");
      assert.equal(await found({ only: [] }), "");
      assert.equal(await found({ except: [key("1"), task] }), "2/default 3/default");
      assert.equal(await found({ except: [] }), "1/default 2/default 2/task-1 3/default");
      const { sessions, total, next_cursor } =
        (await store.listAll?.({ limit: 1, count: true, parents_only: true })) ?? {};
      assert.deepEqual([sessions?.length, total], [1, 3]);
      const rest = await store.listAll?.({ limit: 9, cursor: next_cursor, count: true, parents_only: true });
      assert.deepEqual([rest?.sessions.length, rest?.total, rest?.next_cursor], [2, 3, undefined]);
    },
  ),

  "the last used session is first, and times select sessions by their last use": withSummaries(
    async (store, list) => {
      const instances = async (listing: Partial<SessionListing>): Promise<string> =>
        (await list(listing)).map(({ instance_id }) => instance_id).join(" ");
      for (const instance of ["1", "2", "3"])
        await store.append({ key: key(instance), expected: 0, entries: [prompt("Hello")] });
      // The order is true to a second.
      await setTimeout(1_100);
      await store.append({ key: key("1"), expected: 1, entries: [prompt("Again")] });
      assert.equal(await instances({ order: "recent" }), "1 3 2");
      const first = await store.listAll?.({ limit: 2, order: "recent" });
      const next = await store.listAll?.({ limit: 2, order: "recent", cursor: first?.next_cursor });
      assert.deepEqual(
        [first, next].map((page) => page?.sessions.map(({ instance_id }) => instance_id)),
        [["1", "3"], ["2"]],
      );
      assert.equal(next?.next_cursor, undefined);
      const used = Date.parse((await list({ instance_id: "1" }))[0]?.touched_at ?? "");
      assert.equal(await instances({ since: used }), "1");
      assert.equal(await instances({ since: used + 1 }), "");
      assert.equal(await instances({ until: used }), "2 3");
      assert.equal(await instances({ since: used - 600_000, until: used + 1 }), "1 2 3");
      const listFrom = (cursor: string, order: SessionListing["order"]) => async (): Promise<unknown> =>
        await store.listAll?.({ limit: 2, cursor, order });
      await assert.rejects(listFrom("1.1", "newest"), { code: "invalid_request" });
      await assert.rejects(listFrom("1", "recent"), { code: "invalid_request" });
    },
  ),
};

type List = (listing?: Partial<SessionListing>) => Promise<readonly TouchedSession[]>;

function withSummaries(
  check: (store: SessionStore, list: List) => Promise<void>,
): (store: SessionStore) => Promise<void> {
  return async (store) => {
    const probe = key("probe", "probe");
    await store.append({ key: probe, expected: 0, entries: [prompt("Hello")] });
    const probed = await store.listAll?.({ limit: 1 });
    if (probed?.sessions[0]?.state === undefined) return;
    await store.delete(probe);
    await check(
      store,
      async (listing) => (await store.listAll?.({ limit: 100, ...listing }))?.sessions ?? [],
    );
  };
}
