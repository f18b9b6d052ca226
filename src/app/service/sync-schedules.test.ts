import { expect, test } from "vitest";
import { handlers } from "../../engine/cases/engine-check.ts";
import type { Engine } from "../../engine/contract.ts";
import { createPostgresEngine } from "../../engine/postgres/create-postgres-engine.ts";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import type { LoadedWorkflow } from "../sources/discover-sources.ts";
import { ScheduleSync } from "./sync-schedules.ts";

const server = postgresForTests();

test("in a rolling deploy, old nodes keep the schedules of new files, and schedules of old files end with the last old node", async () => {
  const old = await open("rolling");
  const oldSync = syncOf(old, ["nightly", "gone"]);
  await oldSync.renew();
  const next = await open("rolling");
  const nextSync = syncOf(next, ["nightly", "added"]);
  await nextSync.renew();
  expect(await names(next)).toEqual(["file:added", "file:gone", "file:nightly"]);
  // An old node reads its files again.
  await oldSync.renew();
  expect(await names(next)).toEqual(["file:added", "file:gone", "file:nightly"]);
  oldSync.stop();
  await old.drain({ timeoutMs: 0 });
  await expect.poll(() => names(next)).toEqual(["file:added", "file:nightly"]);
  nextSync.stop();
  await next.drain({ timeoutMs: 0 });
});

test("no schedule is removed while a new node has not declared its schedules", async () => {
  const first = await open("silent");
  const sync = syncOf(first, ["a", "b"]);
  await sync.renew();
  const starting = await open("silent");
  const { problems, workflows } = filesOf(["a"]);
  const changed = new ScheduleSync({ ...quiet(first), sources: () => ({ problems, workflows }) });
  await changed.renew();
  expect(await names(first)).toEqual(["file:a", "file:b"]);
  await starting.cluster?.declareSchedules([]);
  await expect.poll(() => names(first)).toEqual(["file:a"]);
  for (const one of [sync, changed]) one.stop();
  await Promise.all([first, starting].map((engine) => engine.drain({ timeoutMs: 0 })));
});

test("a schedule of a program stays, whatever files declare", async () => {
  const engine = await open("program");
  await engine.putSchedule({ name: "mine", workflow: "w", cron: "0 3 * * *" });
  const sync = syncOf(engine, ["a"]);
  await sync.renew();
  expect(await names(engine)).toEqual(["file:a", "mine"]);
  sync.stop();
  await engine.drain({ timeoutMs: 0 });
});

async function open(schema: string): Promise<Engine> {
  const engine = await createPostgresEngine({ url: server.url, schema });
  await engine.start(handlers({}));
  return engine;
}

function filesOf(declared: readonly string[]) {
  const workflows = declared.map((name) => ({ name, schedules: [{ cron: "0 3 * * *" }] }));
  return { problems: [], workflows: workflows as unknown as readonly LoadedWorkflow[] };
}

function quiet(engine: Engine) {
  return { engine, onError: () => undefined, validateJson: () => [], everyMs: 20 };
}

function syncOf(engine: Engine, declared: readonly string[]): ScheduleSync {
  return new ScheduleSync({ ...quiet(engine), sources: () => filesOf(declared) });
}

async function names(engine: Engine): Promise<readonly string[]> {
  return (await engine.listSchedules()).map(({ name }) => name);
}
