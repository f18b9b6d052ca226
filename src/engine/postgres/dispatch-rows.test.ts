import { afterAll, beforeAll, expect, test } from "vitest";
import { type PostgresServer, startPostgres } from "../../testing/postgres-server.ts";
import { handlers } from "../cases/engine-check.ts";
import type { Engine } from "../contract.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";
import { openEngineDatabase } from "./engine-database.ts";

let server: PostgresServer;
let engine: Engine;
const target = () => ({ url: server.url, schema: "dispatch_rows" });

beforeAll(async () => {
  server = await startPostgres();
  engine = await createPostgresEngine(target());
});
afterAll(async () => {
  await engine.drain({ timeoutMs: 0 });
  await server.stop();
});

test("no index has a column that a claim changes, so that an attempt begins with a write to one page", async () => {
  const database = await openEngineDatabase(target());
  const rows = await database.rows<{ column: string }>(
    `SELECT DISTINCT a.attname AS column FROM pg_index AS i
     JOIN pg_depend AS d ON d.objid = i.indexrelid AND d.refobjid = i.indrelid AND d.refobjsubid > 0
     JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = d.refobjsubid
     WHERE i.indrelid = '$s.dispatches'::regclass`,
  );
  await database.close();
  const indexed = rows.map(({ column }) => column);
  expect(indexed).toContain("shard");
  expect(indexed).toContain("ended_at");
  const claimed = ["status", "attempts", "fence", "next_attempt_at", "started_at"];
  expect(claimed.filter((column) => indexed.includes(column))).toEqual([]);
});

test("the list of a status has the dispatches with that status, newest first, among any number of others", async () => {
  const ids: Record<string, string[]> = { completed: [], failed: [], cancelled: [], queued: [] };
  const admit = async (status: string) => {
    const at = { agent: "a", instance_id: status, session: `${ids[status]?.length}` };
    const { dispatch_id } = await engine.admit({ ...at, input: status });
    ids[status]?.unshift(dispatch_id);
    return dispatch_id;
  };
  for (let turn = 0; turn < 3; turn += 1) {
    await engine.cancelDispatch(await admit("cancelled"));
    await admit("completed");
    await admit("failed");
  }
  await engine.start(
    handlers({
      dispatch: async (_, { input }) => {
        if (input === "failed") throw new TypeError("no");
        // Completed inputs without a result keep no result.
        return undefined;
      },
    }),
  );
  for (const id of [...(ids.completed ?? []), ...(ids.failed ?? [])]) await engine.awaitDispatch(id);
  await engine.leave?.();
  for (let turn = 0; turn < 3; turn += 1) await admit("queued");
  for (const status of ["completed", "failed", "cancelled"] as const) {
    const { items } = await engine.listDispatches({ status });
    expect(items.map(({ dispatch_id }) => dispatch_id)).toEqual(ids[status]);
  }
  const first = await engine.listDispatches({ status: "failed", limit: 2 });
  const rest = await engine.listDispatches({ status: "failed", cursor: first.next_cursor });
  expect([...first.items, ...rest.items].map(({ dispatch_id }) => dispatch_id)).toEqual(ids.failed);
});
