import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, expect, test } from "vitest";
import { testFolder } from "../../testing/test-folder.ts";
import { createEmbeddedEngine } from "./create-embedded-engine.ts";

const folder = testFolder(afterAll);

test("a damaged row has an error in its record, and the other rows are listed, read and worked on", async () => {
  const key = { agent: "a", session: "s" } as const;
  const first = await createEmbeddedEngine({ folder });
  const bad = await first.admit({ ...key, instance_id: "bad", input: { text: "lost" } });
  const good = await first.admit({ ...key, instance_id: "good", input: { text: "kept" } });
  const run = await first.startRun({ workflow: "w", payload: { n: 1 } });
  await first.drain();
  const file = new DatabaseSync(join(folder, "engine.db"));
  file.prepare("UPDATE dispatches SET input = '{\"text\"' WHERE dispatch_id = ?").run(bad.dispatch_id);
  file.prepare("UPDATE runs SET payload = '' WHERE run_id = ?").run(run.run_id);
  file.close();

  const engine = await createEmbeddedEngine({ folder, limits: { attempts: 1 } });
  const damaged = { error: { type: "unavailable", message: "A value in the engine's store is damaged." } };
  expect(await engine.getDispatch(bad.dispatch_id)).toMatchObject({ input: null, ...damaged });
  expect((await engine.listDispatches()).items).toHaveLength(2);
  expect(await engine.getRun(run.run_id)).toMatchObject({ payload: null, ...damaged });
  expect((await engine.listRuns()).items).toHaveLength(1);
  const seen: unknown[] = [];
  await engine.start({
    dispatch: async (_, { input }) => void seen.push(input),
    run: async () => undefined,
  });
  expect(await engine.awaitDispatch(bad.dispatch_id)).toMatchObject({ status: "failed", ...damaged });
  await engine.awaitDispatch(good.dispatch_id);
  expect(await engine.awaitRun(run.run_id)).toMatchObject({ status: "failed", ...damaged });
  expect(seen).toEqual([{ text: "kept" }]);
  await engine.drain();
});
