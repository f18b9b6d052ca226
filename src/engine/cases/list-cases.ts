import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import type { ContractCase } from "../../base/contract-case.ts";
import type { DispatchFilter, Engine, Page, RunFilter } from "../contract.ts";
import {
  type EngineCheck,
  type EngineSubject,
  handlers,
  sessionKey as key,
  toCases,
} from "./engine-check.ts";

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

  "lists are searched, limited to a time, counted, and filtered by several statuses": async (tools) => {
    const engine = await tools.create();
    const admit = async (input: unknown, instance_id = "pr-7"): Promise<string> =>
      (await engine.admit({ ...key, instance_id, input })).dispatch_id;
    const start = async (workflow: string, payload: unknown): Promise<string> =>
      (await engine.startRun({ workflow, payload })).run_id;
    const [one, two, three] = [
      await admit("Refund 100%"),
      await admit({ text: 'Über "7"' }, "Üb-9"),
      await admit(3),
    ];
    const [a, b, c] = [
      await start("refund", 1),
      await start("w", { text: "Refund_7" }),
      await start("w", "x"),
    ];
    await engine.cancelDispatch(three);
    await engine.cancelRun(c);
    const dispatches = async (filter: DispatchFilter): Promise<readonly string[]> =>
      (await engine.listDispatches(filter)).items.map(({ dispatch_id }) => dispatch_id);
    const runs = async (filter: RunFilter): Promise<readonly string[]> =>
      (await engine.listRuns(filter)).items.map(({ run_id }) => run_id);
    assert.deepEqual(await dispatches({ search: "refund 100%" }), [one]);
    assert.deepEqual(await dispatches({ search: 'über "7"' }), [two]);
    assert.deepEqual(await dispatches({ search: "üB-9" }), [two]);
    assert.deepEqual(await dispatches({ search: two.toLowerCase() }), [two]);
    assert.deepEqual(await dispatches({ search: "100_" }), []);
    assert.deepEqual(await runs({ search: "REFUND" }), [b, a]);
    assert.deepEqual(await runs({ search: "refund_7", workflow: "w" }), [b]);
    assert.deepEqual(await dispatches({ status: ["queued", "running"] }), [two, one]);
    assert.deepEqual(await dispatches({ status: ["queued", "cancelled", "completed"] }), [three, two, one]);
    assert.deepEqual(await runs({ status: ["cancelled", "failed"] }), [c]);
    assert.deepEqual(await runs({ status: ["cancelled", "queued"], workflow: "w" }), [c, b]);
    const accepted = Date.parse((await engine.getRun(a))?.accepted_at ?? "");
    const later = Date.parse((await engine.getDispatch(three))?.accepted_at ?? "");
    assert.deepEqual(await runs({ since: accepted - 5_000, until: accepted }), []);
    assert.deepEqual((await runs({ since: accepted })).length, 3);
    assert.deepEqual(await runs({ since: accepted + 7_200_000 }), []);
    assert.deepEqual((await dispatches({ until: later + 1 })).length, 3);
    assert.deepEqual(await dispatches({ until: later - 7_200_000 }), []);
    assert.deepEqual(await dispatches({ agent: key.agent, session: key.session }), [three, two, one]);
    assert.deepEqual(await dispatches({ session: "another" }), []);
    const { total } = await engine.listRuns({ limit: 1, count: true, status: ["queued", "cancelled"] });
    const counted = await engine.listDispatches({ limit: 1, count: true, agent: key.agent, cursor: two });
    assert.deepEqual([total, counted.total, counted.items.length], [3, 3, 1]);
    assert.equal((await engine.listRuns({ limit: 1 })).total, undefined);
  },

  "the signals that runs wait for are listed with their number, oldest first, until they arrive": async (
    tools,
  ) => {
    const engine = await tools.create({ running: 2 });
    if (engine.listWaitingSignals === undefined) return;
    const list = engine.listWaitingSignals.bind(engine);
    const schema = { type: "boolean" };
    await engine.start(
      handlers({
        run: async (context, { payload }) => {
          if (payload === "sleeps") await context.sleep(60_000);
          return await context.waitFor("approval", { schema });
        },
      }),
    );
    assert.deepEqual(await list({ limit: 10 }), { items: [], total: 0 });
    const ids: string[] = [];
    for (const version of ["1", "2", "3"]) {
      const { run_id } = await engine.startRun({ workflow: "deploy", payload: { version } });
      ids.push(run_id);
      while ((await list({ limit: 1 })).total !== ids.length) await setTimeout(10);
    }
    await engine.startRun({ workflow: "deploy", payload: "sleeps" });
    const { items } = await list({ limit: 10 });
    assert.deepEqual(
      items.map(({ requested_at: _, ...rest }) => rest),
      ids.map((run_id, at) => ({
        kind: "signal",
        run_id,
        workflow: "deploy",
        position: 1,
        signal: "approval",
        schema,
        payload_start: `{"version":"${at + 1}"}`,
      })),
    );
    const [first] = items;
    assert.ok(first !== undefined && Math.abs(Date.parse(first.requested_at) - Date.now()) < 60_000);
    const after = { at: first.requested_at, id: first.run_id, position: first.position };
    const next = await list({ limit: 1, after });
    assert.deepEqual([next.items.map(({ run_id }) => run_id), next.total], [[ids[1]], 3]);
    await engine.signal(ids[0] ?? "", { name: "approval", payload: true });
    await engine.cancelRun(ids[1] ?? "");
    assert.deepEqual(
      (await list({ limit: 10 })).items.map(({ run_id }) => run_id),
      [ids[2]],
    );
  },
};
