import { expect, onTestFinished, test } from "vitest";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { WaitingCallRecords } from "../shared/waiting-calls.ts";
import { type EngineDatabase, openEngineDatabase } from "./engine-database.ts";
import type { PostgresBase } from "./postgres-base.ts";
import { createWaitingCallRows, pruneWaitingCalls } from "./waiting-calls.ts";

const server = postgresForTests();

/** Opens a database with decided calls, the first of which are old. */
async function openWithCalls({ schema, old }: { readonly schema: string; readonly old: number }) {
  const database = await openEngineDatabase({ url: server.url, schema });
  onTestFinished(() => database.close());
  await database.run(
    `INSERT INTO $s.waiting_calls (call_id, agent, instance_id, session, requested_at, node, request, decision, written_at, work)
     SELECT 'approval_' || i, 'payer', 'i' || i, 'default', '2026-11-28T00:00:00.000Z', '', repeat('x', 500), '{}',
       CASE WHEN i <= $1 THEN 1 ELSE 3 END, 'dispatch_' || i FROM generate_series(1, 3000) AS i`,
    [old],
  );
  await database.run("ANALYZE $s.waiting_calls");
  return database;
}

/** Returns how the database performs a query. */
async function planOf(
  database: EngineDatabase,
  ask: (base: PostgresBase) => Promise<unknown>,
): Promise<string> {
  let plan = "";
  const rows: EngineDatabase["rows"] = async (sql, values) => {
    const lines = await database.rows<Readonly<Record<string, string>>>(`EXPLAIN ${sql}`, values);
    plan = lines.map((line) => line["QUERY PLAN"]).join("\n");
    return [];
  };
  await ask({ database: { ...database, rows }, ownership: { node: "n" } } as unknown as PostgresBase);
  return plan;
}

test("lists of waiting calls, and their pruning, do not read the calls that were decided", async () => {
  const database = await openWithCalls({ schema: "call_plans", old: 0 });
  const listing = await planOf(database, async (base) => createWaitingCallRows(base).list({}));
  const pruning = await planOf(database, (base) => pruneWaitingCalls(base, 2));
  for (const plan of [listing, pruning]) {
    expect(plan).toMatch(/waiting_calls_(?:open|by_session)/);
    expect(plan).not.toContain("Seq Scan on waiting_calls");
  }
});

test("old decided calls are deleted in batches", async () => {
  const database = await openWithCalls({ schema: "call_batches", old: 1_200 });
  const base = { database } as PostgresBase;
  const count = async () =>
    (await database.row<{ count: number }>("SELECT count(*) FROM $s.waiting_calls"))?.count;
  expect([await pruneWaitingCalls(base, 2), await count()]).toEqual([true, 2_500]);
  expect([await pruneWaitingCalls(base, 2), await count()]).toEqual([true, 2_000]);
  expect([await pruneWaitingCalls(base, 2), await count()]).toEqual([false, 1_800]);
});

test("a wait is told its decision once, also if the calls are checked while it is made", async () => {
  const database = await openWithCalls({ schema: "call_checks", old: 0 });
  const base = { database, ownership: { node: "n" }, clock: { now: () => 1 } } as unknown as PostgresBase;
  const rows = createWaitingCallRows(base);
  const records: WaitingCallRecords = new WaitingCallRecords({
    ...rows,
    decide: async (...decided) => {
      const isFirst = await rows.decide(...decided);
      await records.check();
      return isFirst;
    },
  });
  await database.run(
    "INSERT INTO $s.nodes (node, backend, beat, started_at, version, host, takes) VALUES ('n', 1, now(), now(), '1', 'h', 'share')",
    [],
  );
  const decisions: unknown[] = [];
  const session = { agent: "payer", instance_id: "i", session: "default" };
  const call = {
    approval_id: "approval_new",
    ...session,
    operation_id: "op_1",
    tool_call_id: "call_1",
    tool: "pay",
    args: {},
    requested_at: "2026-11-28T00:00:01.000Z",
  };
  await records.add({ request: call }, (decision) => decisions.push(decision));
  await records.decide("approval_new", { approved: true });
  await records.check();
  expect(decisions).toEqual([{ approved: true }]);
});
