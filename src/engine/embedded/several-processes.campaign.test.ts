import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { stopBetweenWrites } from "../../testing/stop-between-writes.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { createEmbeddedEngine } from "./create-embedded-engine.ts";
import { startEngineProcess } from "./testing/engine-process.ts";

const root = testFolder(afterAll);
const key = { agent: "worker", instance_id: "i", session: "default" };
const handlers = { run: async () => undefined, dispatch: async () => process.pid };

test("one process works, and another only accepts; when the first is killed, the second takes over at once", async () => {
  const folder = join(root, "killed");
  const child = await startEngineProcess({ folder, work: "quick" });
  child.notify({ order: "start" });
  await child.collect("started");
  // So long that the takeover does not come from an expired lease.
  const engine = createEmbeddedEngine({ folder, limits: { leaseMs: 3_600_000 } });
  await engine.start(handlers);
  const done = async (input: number): Promise<unknown> => {
    const { dispatch_id } = await engine.admit({ ...key, input });
    return (await engine.awaitDispatch(dispatch_id))?.result;
  };
  expect(await done(1)).toBe(child.pid);
  expect(await done(2)).toBe(child.pid);
  const pid = async (): Promise<number> => process.pid;
  await expect(engine.inLine(key, pid)).rejects.toMatchObject({ code: "unavailable" });
  child.signal("SIGKILL");
  await child.ended();
  expect(await done(4)).toBe(process.pid);
  expect(await engine.inLine(key, pid)).toBe(process.pid);
  await engine.drain();
});

test("a process that drains hands over at once", async () => {
  const folder = join(root, "drained");
  const child = await startEngineProcess({ folder, work: "hold" });
  child.notify({ order: "admit", request: { ...key, input: 1 } });
  const { dispatch_id } = await child.collect("admitted");
  child.notify({ order: "start" });
  await child.collect("begun");
  const engine = createEmbeddedEngine({ folder, limits: { leaseMs: 3_600_000 } });
  await engine.start(handlers);
  child.notify({ order: "drain" });
  // Its handler returned a result when its signal fired, so the input has ended.
  expect(await engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed", result: "too late" });
  const next = await engine.admit({ ...key, input: 2 });
  expect(await engine.awaitDispatch(next.dispatch_id)).toMatchObject({ result: process.pid });
  await child.ended();
  await engine.drain();
});

test("a frozen process loses its work when its lease expires, notices it when it wakes, and writes nothing", async () => {
  const folder = join(root, "frozen");
  const limits = { leaseMs: 2_000 };
  const child = await startEngineProcess({ folder, limits, work: "hold" });
  child.notify({ order: "admit", request: { ...key, input: 1 } });
  const { dispatch_id } = await child.collect("admitted");
  child.notify({ order: "start" });
  await child.collect("begun");
  const engine = createEmbeddedEngine({ folder, limits });
  await engine.start(handlers);
  await stopBetweenWrites(child.pid, folder);
  const record = await engine.awaitDispatch(dispatch_id);
  expect(record).toMatchObject({ status: "completed", result: process.pid, attempts: 2 });
  child.signal("SIGCONT");
  expect(await child.collect("aborted")).toEqual({ news: "aborted", code: "lease_lost" });
  // It can still accept work, which is done here.
  const received = child.news.length;
  child.notify({ order: "admit", request: { ...key, input: 2 } });
  const next = await child.collect("admitted", received);
  expect(await engine.awaitDispatch(next.dispatch_id)).toMatchObject({ result: process.pid });
  child.notify({ order: "drain" });
  await child.ended();
  expect(await engine.getDispatch(dispatch_id)).toEqual(record);
  await engine.drain();
});

test("a standby cancels the running and waiting work of another process", async () => {
  const folder = join(root, "cancelled");
  const child = await startEngineProcess({ folder, work: "hold" });
  child.notify({ order: "start" });
  await child.collect("started");
  const engine = createEmbeddedEngine({ folder });
  const runs = await engine.admit({ ...key, input: 1 });
  const waits = await engine.admit({ ...key, input: 2 });
  await child.collect("begun");
  expect(await engine.cancelDispatch(waits.dispatch_id)).toBe(true);
  expect(await engine.cancelDispatch(runs.dispatch_id)).toBe(true);
  expect(await child.collect("aborted")).toEqual({ news: "aborted", code: "aborted" });
  expect((await engine.awaitDispatch(runs.dispatch_id))?.status).toBe("cancelled");
  expect((await engine.awaitDispatch(waits.dispatch_id))?.status).toBe("cancelled");
  child.notify({ order: "drain" });
  await child.ended();
  await engine.drain();
});
