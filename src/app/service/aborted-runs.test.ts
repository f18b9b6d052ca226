import { expect, test } from "vitest";
import type { KitEvent } from "../../protocol/event.ts";
import { eventsOf, openWorkflows, waiting } from "./testing/open-workflows.ts";

const endOf = ({ type, ...event }: KitEvent) =>
  "is_error" in event ? [{ type, is_error: event.is_error, is_aborted: "is_aborted" in event }] : [];

test("a cancelled run ends as aborted, not as failed", async () => {
  const begun = Promise.withResolvers<void>();
  const { service } = await openWorkflows(
    {
      "src/workflows/long.ts": `import writer from "../agents/writer.ts";
export async function run(ctx) {
  const session = (await ctx.init(writer)).session();
  await Promise.all([ctx.step("deaf", () => new Promise(() => {})), session.prompt("Think long.")]);
}`,
    },
    () => {
      begun.resolve();
      return { text: "never", delayMs: 600_000 };
    },
  );
  const { run_id } = await service.startRun("long", {});
  await begun.promise;
  await service.engine.cancelRun(run_id);
  expect(await service.engine.awaitRun(run_id)).toMatchObject({ status: "cancelled" });
  const ends = (await eventsOf(service, run_id)).flatMap(endOf);
  expect(ends.map(({ type }) => type).sort()).toEqual(["operation", "run_end", "step_end", "turn_end"]);
  expect(ends.at(-1)?.type).toBe("run_end");
  for (const end of ends) expect(end).toMatchObject({ is_error: true, is_aborted: true });
});

test("a run that is cancelled while it waits ends as aborted, too", async () => {
  const { service } = await openWorkflows({
    "src/workflows/idle.ts": `export async function run(ctx) {
  ctx.log.info("waiting");
  await ctx.waitFor("go");
}`,
  });
  const { run_id } = await service.startRun("idle", {});
  await waiting(service, run_id);
  await expect.poll(async () => (await service.engine.getRun(run_id))?.status).toBe("waiting");
  expect((await service.engine.getRun(run_id))?.waiting_for).toEqual([{ signal: "go" }]);
  await service.engine.cancelRun(run_id);
  const last = (await eventsOf(service, run_id)).at(-1);
  expect(last).toMatchObject({ type: "run_end", is_error: true, is_aborted: true });
});

test("an operation whose signal fires is aborted, also in a run and in its replay", async () => {
  const { service, restart } = await openWorkflows(
    {
      "src/workflows/stop.ts": `import writer from "../agents/writer.ts";
export async function run(ctx) {
  const session = (await ctx.init(writer)).session();
  const stop = new AbortController();
  const stream = session.stream("Think long.", { signal: stop.signal });
  let read = "all";
  try {
    for await (const event of stream) if (event.type === "turn_request") stop.abort(new Error("changed my mind"));
  } catch (error) {
    read = error.code;
  }
  const code = await stream.result.catch((error) => error.code);
  ctx.log.info("waiting");
  await ctx.waitFor("go");
  return { code, read };
}`,
    },
    () => ({ text: "never", delayMs: 600_000 }),
  );
  const { run_id } = await service.startRun("stop", {});
  await waiting(service, run_id);
  const second = await restart();
  await second.engine.signal(run_id, { name: "go" });
  expect(await second.engine.awaitRun(run_id)).toMatchObject({
    status: "completed",
    result: { code: "aborted", read: "aborted" },
  });
  const ends = (await eventsOf(second, run_id)).flatMap(endOf);
  expect(ends).toEqual([
    { type: "turn_end", is_error: true, is_aborted: true },
    { type: "operation", is_error: true, is_aborted: true },
    { type: "run_end", is_error: false, is_aborted: false },
  ]);
});

test("a step that times out has ended in the log and for the run", async () => {
  const { service } = await openWorkflows({
    "src/workflows/late.ts": `export async function run(ctx) {
  const late = ctx.step("late", () => new Promise(() => {}), { timeoutMs: 1 });
  await late.catch(() => undefined);
  await ctx.step("next", () => 1);
}`,
  });
  const { run_id } = await service.startRun("late", {});
  expect(await service.engine.awaitRun(run_id)).toMatchObject({ status: "completed" });
  const steps = (await eventsOf(service, run_id)).flatMap((event) =>
    event.type === "step_start" || event.type === "step_end" ? [[event.type, event.step]] : [],
  );
  expect(steps).toEqual([
    ["step_start", "late"],
    ["step_end", "late"],
    ["step_start", "next"],
    ["step_end", "next"],
  ]);
});
