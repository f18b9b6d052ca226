import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, expect, test } from "vitest";
import { testFolder } from "../../testing/test-folder.ts";
import { createEmbeddedEngine } from "./create-embedded-engine.ts";

const root = testFolder(afterAll);
const key = { agent: "worker", instance_id: "i", session: "default" };

test("a store that another program locks for a moment delays receipts and ends, and loses none", async () => {
  const folder = join(root, "moment");
  const engine = createEmbeddedEngine({ folder });
  const begun = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  await engine.start({
    run: async () => undefined,
    dispatch: async (_, { input }) => {
      begun.resolve();
      if (input === 1) await end.promise;
      return input;
    },
  });
  const first = await engine.admit({ ...key, input: 1 });
  await begun.promise;

  const other = new DatabaseSync(join(folder, "engine.db"));
  other.exec("BEGIN IMMEDIATE");
  const events: string[] = [];
  const admission = engine.admit({ ...key, input: 2 }).then((receipt) => {
    events.push("receipt");
    return receipt;
  });
  end.resolve();
  const record = engine.awaitDispatch(first.dispatch_id);
  // Reads and the rest of the process continue meanwhile.
  for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
  expect((await engine.getDispatch(first.dispatch_id))?.status).toBe("running");
  events.push("unlocked");
  other.exec("COMMIT");
  other.close();

  const second = await admission;
  expect(events).toEqual(["unlocked", "receipt"]);
  expect(await record).toMatchObject({ status: "completed", result: 1, attempts: 1 });
  expect(await engine.awaitDispatch(second.dispatch_id)).toMatchObject({ status: "completed", result: 2 });
  await engine.drain();
});
