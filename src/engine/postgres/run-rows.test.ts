import { expect, test } from "vitest";
import { startPostgres } from "../../testing/postgres-server.ts";
import { handlers } from "../cases/engine-check.ts";
import type { RunRow } from "../shared/runs/run-store.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";
import { openEngineDatabase } from "./engine-database.ts";
import type { PostgresBase } from "./postgres-base.ts";
import { RunRows } from "./run-rows.ts";

test("the end of a run is recorded once, and its repetition after a lost answer is no loss of the lease", async () => {
  const server = await startPostgres();
  const target = { url: server.url, schema: "ends" };
  const database = await openEngineDatabase(target);
  const engine = await createPostgresEngine(target);
  const gate = Promise.withResolvers<string>();
  await engine.start(handlers({ run: () => gate.promise }));
  const { run_id } = await engine.startRun({ workflow: "w", payload: {} });
  const find = async (): Promise<RunRow & { fence: number }> => {
    const row = await database.row<RunRow & { fence: number }>("SELECT * FROM $s.runs WHERE run_id = $1", [
      run_id,
    ]);
    if (row === undefined) throw new Error("The run is gone.");
    return row;
  };
  await expect.poll(async () => (await find()).status).toBe("running");
  const run = await find();
  const rows = new RunRows({ database, clock: { now: () => 7 } } as PostgresBase);
  const end = { status: "completed", result: "1", error: null } as const;
  await rows.settle(run, end, run.fence);
  await rows.settle(run, { ...end, result: "2" }, run.fence);
  expect(await find()).toMatchObject({ status: "completed", result: "1", ended_at: 7 });
  await expect(rows.settle(run, end, run.fence - 1)).rejects.toThrow("Another process does this work now.");
  // The engine itself comes too late, learns that the end is its own, and ends the stream.
  gate.resolve("late");
  for await (const event of engine.events.subscribe(`run/${run_id}`)) expect(event.index).toBeGreaterThan(0);
  await engine.drain({ timeoutMs: 0 });
  await database.close();
  await server.stop();
}, 60_000);
