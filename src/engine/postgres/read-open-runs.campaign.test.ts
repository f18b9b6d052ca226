import { expect, test } from "vitest";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { handlers } from "../cases/engine-check.ts";
import type { RunContext } from "../contract.ts";
import { checkReplay } from "../shared/runs/replay-check.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";
import { openEngineDatabase } from "./engine-database.ts";
import { openSharedRuns } from "./read-open-runs.ts";

const server = postgresForTests();

test("runs of a shared engine are checked while its nodes work: nothing is written, and no shard is taken", async () => {
  const target = { url: server.url, schema: "open_runs" };
  const engine = await createPostgresEngine(target);
  const flow = async (context: RunContext): Promise<unknown> => {
    await context.step("one", () => ({ large: "x".repeat(10_000) }));
    await context.step("failed", () => Promise.reject(new Error("no"))).catch(() => undefined);
    return await context.waitFor("go");
  };
  await engine.start(handlers({ run: flow }));
  await engine.startRun({ workflow: "flow", payload: { n: 1 } });
  await expect.poll(async () => (await engine.load()).waiting_runs).toBe(1);
  const database = await openEngineDatabase(target);
  const state = () =>
    database.rows(
      "SELECT (SELECT json_agg(r) FROM $s.runs AS r) AS runs, (SELECT json_agg(j) FROM $s.run_journal AS j) AS journal, (SELECT json_agg(s ORDER BY shard) FROM $s.shards AS s) AS shards, (SELECT count(*) FROM $s.nodes) AS nodes",
    );
  const before = await state();
  const runs = await openSharedRuns(target);
  const verdicts = [];
  let ran = 0;
  for await (const open of runs.read()) {
    verdicts.push(await checkReplay(open, flow));
    verdicts.push(
      await checkReplay(open, async (context) => {
        await context.step("one", () => 1);
        await context.step("other", () => (ran += 1));
      }),
    );
  }
  expect(verdicts).toMatchObject([
    { outcome: "matches" },
    {
      outcome: "mismatch",
      error: { meta: { position: 2, recorded: 'step "failed"', asked: 'step "other"' } },
    },
  ]);
  expect(ran).toBe(0);
  expect(await state()).toEqual(before);
  await Promise.all([runs.close(), database.close(), engine.drain({ timeoutMs: 0 })]);
});

test("a schema without an engine is refused, and no tables are created", async () => {
  await expect(openSharedRuns({ url: server.url, schema: "nothing_here" })).rejects.toMatchObject({
    code: "not_found",
    message: expect.stringContaining("nothing_here"),
  });
});
