import { expect, test } from "vitest";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { handlers } from "../cases/engine-check.ts";
import { followFamily, type Member } from "../embedded/runs/testing/run-flow.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";
import { openEngineDatabase } from "./engine-database.ts";

const server = postgresForTests();

test("suspects that wait for other runs, a signal or a person block none", async () => {
  const target = { url: server.url, schema: "suspects" };
  const database = await openEngineDatabase(target);
  const engine = await createPostgresEngine(target);
  const family: Member[] = ["signalled parent", "person", "grandparent", "parent", "parent", "kid"];
  const ids: string[] = [];
  for (const payload of family) ids.push((await engine.startRun({ workflow: "family", payload })).run_id);
  await database.run("UPDATE $s.runs SET crashes = 3");
  // The children are suspects as well.
  await database.run("ALTER TABLE $s.runs ALTER COLUMN crashes SET DEFAULT 3");
  const decision = Promise.withResolvers<void>();
  await engine.start(
    handlers({
      run: (context, { payload }) =>
        followFamily(
          engine,
          { context, member: payload as Member },
          { step: () => "done", decide: () => decision.promise },
        ),
    }),
  );
  const [signalledParent = "", person = "", ...others] = ids;
  for (const id of others) expect(await engine.awaitRun(id)).toMatchObject({ status: "completed" });
  decision.resolve();
  expect((await engine.awaitRun(person))?.result).toBe("decided");
  const signalled = (await engine.getRun(signalledParent))?.waiting_for?.[0]?.run_id ?? "";
  await engine.signal(signalled, { name: "go" });
  expect((await engine.awaitRun(signalledParent))?.result).toBe(signalled);
  await engine.drain({ timeoutMs: 0 });
  await database.close();
}, 60_000);
