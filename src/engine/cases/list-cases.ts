import assert from "node:assert/strict";
import type { ContractCase } from "../../base/contract-case.ts";
import type { Engine, Page } from "../contract.ts";
import { type EngineCheck, type EngineSubject, sessionKey as key, toCases } from "./engine-check.ts";

const other = { ...key, instance_id: "pr-8" };

/** The promises about lists. */
export function listCases(subject: EngineSubject): readonly ContractCase[] {
  return toCases(subject, { fresh });
}

const fresh: Readonly<Record<string, EngineCheck>> = {
  "lists are sorted newest first, filtered, and divided into pages": async (tools) => {
    const engine = await tools.create();
    const ids: string[] = [];
    for (let index = 0; index < 7; index += 1) {
      const target = index % 2 === 0 ? key : other;
      ids.unshift((await engine.admit({ ...target, input: index })).dispatch_id);
    }
    const [newest = ""] = ids;
    await engine.cancelDispatch(newest);
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await engine.listDispatches({ limit: 3, cursor });
      assert.ok(page.items.length <= 3);
      found.push(...page.items.map((item) => item.dispatch_id));
      cursor = page.next_cursor;
    } while (cursor !== undefined);
    assert.deepEqual(found, ids);
    const count = async (filter: Parameters<typeof engine.listDispatches>[0]): Promise<number> =>
      (await engine.listDispatches(filter)).items.length;
    assert.equal(await count({ instance_id: "pr-8" }), 3);
    assert.equal(await count({ agent: "reviewer", instance_id: "pr-7" }), 4);
    assert.equal(await count({ agent: "writer" }), 0);
    assert.equal(await count({ status: "queued" }), 6);
    assert.equal(await count({ status: "cancelled", agent: "reviewer", instance_id: "pr-7" }), 1);
    assert.equal(await count({ status: "completed" }), 0);
    for (const limit of [0, 1_001, 1.5]) {
      await assert.rejects(engine.listDispatches({ limit }), { code: "invalid_request" });
    }
    for (const cursor of ["", "~", "dispatch_", "' OR 1"]) {
      await assert.rejects(engine.listDispatches({ cursor }), { code: "invalid_request" });
    }
  },

  "a list of large records comes in smaller pages": async (tools) => {
    const engine = await tools.create();
    const large = "x".repeat(3_000_000);
    for (let index = 0; index < 5; index += 1) {
      await engine.admit({ ...key, input: { index, large } });
      await engine.startRun({ workflow: "w", payload: { index, large } });
    }
    const inPages = async <Item>(list: (filter: { cursor?: string }) => Promise<Page<Item>>) => {
      const items: Item[] = [];
      let cursor: string | undefined;
      do {
        const page = await list(cursor === undefined ? {} : { cursor });
        assert.ok(page.items.length > 0 && page.items.length < 5);
        items.push(...page.items);
        cursor = page.next_cursor;
      } while (cursor !== undefined);
      return items;
    };
    const indexOf = (value: unknown): number => (value as { readonly index: number }).index;
    const inputs = (await inPages(engine.listDispatches)).map(({ input }) => indexOf(input));
    assert.deepEqual(inputs, [4, 3, 2, 1, 0]);
    const payloads = (await inPages(engine.listRuns)).map(({ payload }) => indexOf(payload));
    assert.deepEqual(payloads, [4, 3, 2, 1, 0]);
  },

  "runs are listed newest first, by workflow and status, in pages": async (tools) => {
    const engine = await tools.create();
    const ids: string[] = [];
    for (let index = 0; index < 5; index += 1) {
      const workflow = index % 2 === 0 ? "even" : "odd";
      ids.unshift((await engine.startRun({ workflow, payload: index })).run_id);
    }
    const idsOf = async (filter: Parameters<Engine["listRuns"]>[0]): Promise<readonly string[]> =>
      (await engine.listRuns(filter)).items.map(({ run_id }) => run_id);
    assert.deepEqual(await idsOf({}), ids);
    assert.deepEqual(await idsOf({ workflow: "odd" }), [ids[1], ids[3]]);
    assert.deepEqual(await idsOf({ workflow: "even", status: "queued" }), [ids[0], ids[2], ids[4]]);
    assert.deepEqual(await idsOf({ status: "completed" }), []);
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await engine.listRuns({ limit: 2, cursor });
      seen.push(...page.items.map(({ run_id }) => run_id));
      cursor = page.next_cursor;
    } while (cursor !== undefined);
    assert.deepEqual(seen, ids);
    await assert.rejects(engine.listRuns({ cursor: "' OR 1" }), { code: "invalid_request" });
    await assert.rejects(engine.listRuns({ limit: 1_001 }), { code: "invalid_request" });
  },
};
