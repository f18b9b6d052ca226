import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { KitError } from "../../base/kit-error.ts";
import { createManualClock, type ManualClock } from "../../testing/manual-clock.ts";
import { gate, handlers } from "../cases/engine-check.ts";
import type { Engine, EngineHandlers } from "../contract.ts";
import { createEmbeddedEngine } from "./create-embedded-engine.ts";

const key = { agent: "worker", instance_id: "i", session: "default" };
const hour = 3_600_000;
const noon = Date.parse("2026-11-21T12:00:00Z");
const opened: Engine[] = [];
const folders: string[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((engine) => engine.drain({ timeoutMs: 0 })));
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function open({ clock = createManualClock(noon), folder }: { clock?: ManualClock; folder?: string } = {}): {
  engine: Engine;
  clock: ManualClock;
} {
  const engine = createEmbeddedEngine({ clock, folder });
  opened.push(engine);
  return { engine, clock };
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "kit-clock-"));
  folders.push(folder);
  return folder;
}

/** Lets time pass, and the work that waits for it run. */
async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 1_000) await clock.advance(Math.min(left, 1_000));
  for (let turn = 0; turn < 50; turn += 1) await setImmediate();
}

test("after the machine was asleep, due runs and schedules begin within a minute", async () => {
  const { engine, clock } = open();
  const begun: unknown[] = [];
  const run: EngineHandlers["run"] = async (context, { payload }) => {
    if (payload === "sleeps") await context.sleep(8 * hour);
    begun.push(payload);
  };
  await engine.start(handlers({ run }));
  await engine.startRun({ workflow: "w", payload: "sleeps" });
  await engine.putSchedule({ name: "evening", workflow: "w", cron: "0 18 * * *", payload: "scheduled" });
  await pass(clock, 5_000);
  clock.suspend(12 * hour);
  await pass(clock, 70_000);
  expect(begun.toSorted()).toEqual(["scheduled", "sleeps"]);
});

test("a drain does not wait half a minute for an approval", async () => {
  const { engine, clock } = open();
  const requested = gate();
  const reasons: unknown[] = [];
  await engine.start(
    handlers({
      async dispatch({ releaseSlot, signal }) {
        releaseSlot();
        requested.open();
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        reasons.push(signal.reason instanceof KitError ? signal.reason.meta : signal.reason);
      },
    }),
  );
  await engine.admit({ ...key, input: 1 });
  await requested.opened;
  const drained = engine.drain({ timeoutMs: 30_000 });
  await pass(clock, 4_000);
  expect(reasons).toEqual([]);
  await pass(clock, 2_000);
  expect(reasons).toEqual([{ will_resume: true }]);
  await drained;
});

test("work in progress continues after the machine slept, as long as no other process has claimed it", async () => {
  const { engine, clock } = open();
  const { opened: end, open: letEnd } = gate();
  const attempts: number[] = [];
  await engine.start(
    handlers({
      async dispatch({ attempt, signal }) {
        attempts.push(attempt);
        await end;
        return signal.aborted;
      },
    }),
  );
  const { dispatch_id } = await engine.admit({ ...key, input: 1 });
  await pass(clock, 5_000);
  clock.suspend(12 * hour);
  await pass(clock, 10_000);
  letEnd();
  expect(await engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed", result: false });
  expect(attempts).toEqual([1]);
});

test("a clock that is set back does not delay the next attempt of a session", async () => {
  const { engine, clock } = open();
  const attempts: number[] = [];
  await engine.start(
    handlers({
      async dispatch({ attempt }) {
        attempts.push(attempt);
        if (attempt === 1) throw new KitError({ code: "unavailable", message: "Not now." });
      },
    }),
  );
  await engine.admit({ ...key, input: 1 });
  await pass(clock, 100);
  clock.set(noon - 24 * hour);
  await pass(clock, 2_000);
  expect(attempts).toEqual([1, 2]);
});

test("a schedule that was declared while the clock was far ahead runs at its time, and no occurrence runs twice", async () => {
  const { engine, clock } = open();
  const keys: unknown[] = [];
  const run: EngineHandlers["run"] = async (_, { idempotency_key }) => void keys.push(idempotency_key);
  clock.set(noon + 1_000 * 24 * hour);
  await engine.putSchedule({ name: "s", workflow: "w", cron: "0 * * * *" });
  clock.set(noon);
  await engine.start(handlers({ run }));
  await pass(clock, hour + 60_000);
  expect(keys).toEqual(["schedule:s:2026-11-21T13:00:00.000Z"]);
  clock.set(noon);
  await pass(clock, hour + 60_000);
  expect(keys).toHaveLength(1);
  await pass(clock, hour);
  expect(keys.slice(1)).toEqual(["schedule:s:2026-11-21T14:00:00.000Z"]);
});

test.each([
  ["back", -hour],
  ["forward", hour],
])(
  "a sleep keeps its duration when the clock is set %s an hour, also if its run is not in memory",
  async (_, jump) => {
    const { engine, clock } = open();
    const woken: string[] = [];
    await engine.start(
      handlers({
        async run({ sleep, waitFor }, { payload }) {
          if (payload === "wait") await waitFor("nothing", { timeoutMs: 20_000 });
          else await sleep(20_000);
          woken.push(String(payload));
        },
      }),
    );
    for (const payload of ["sleep", "wait"]) await engine.startRun({ workflow: "w", payload });
    await pass(clock, 5_000);
    clock.set(clock.now() + jump);
    const ends = (await engine.listRuns()).items.map(({ waiting_for: [wait] = [] }) =>
      Date.parse(`${wait?.until}`),
    );
    const left = Math.min(...ends) - clock.now();
    expect(left).toBeGreaterThanOrEqual(15_000);
    await pass(clock, left - 1_000);
    expect(woken).toEqual([]);
    await pass(clock, 3_000);
    expect(woken.toSorted()).toEqual(["sleep", "wait"]);
  },
);

test("a sleep resumes after a restart when the clock was set back while no process ran", async () => {
  const folder = temporaryFolder();
  const clock = createManualClock(noon);
  const woken: unknown[] = [];
  const run: EngineHandlers["run"] = async ({ sleep }) => {
    await sleep(20_000);
    woken.push(1);
  };
  const before = open({ clock, folder });
  await before.engine.start(handlers({ run }));
  await before.engine.startRun({ workflow: "w", payload: 1 });
  await pass(clock, 10_000);
  const drained = before.engine.drain({ timeoutMs: 0 });
  await pass(clock, 3_000);
  await drained;
  clock.set(clock.now() - hour);
  const after = open({ clock, folder });
  await after.engine.start(handlers({ run }));
  await pass(clock, 6_000);
  expect(woken).toEqual([]);
  await pass(clock, 6_000);
  expect(woken).toEqual([1]);
});

test("a schedule of every minute continues when the clock is set back an hour, and a daily one does not run twice", async () => {
  const { engine, clock } = open();
  const keys: string[] = [];
  const run: EngineHandlers["run"] = async (_, { idempotency_key }) => void keys.push(`${idempotency_key}`);
  await engine.start(handlers({ run }));
  await engine.putSchedule({ name: "minute", workflow: "w", cron: "* * * * *" });
  await engine.putSchedule({ name: "day", workflow: "w", cron: "1 12 * * *" });
  await pass(clock, 125_000);
  expect(keys).toEqual([
    "schedule:minute:2026-11-21T12:01:00.000Z",
    "schedule:day:2026-11-21T12:01:00.000Z",
    "schedule:minute:2026-11-21T12:02:00.000Z",
  ]);
  clock.set(clock.now() - hour);
  await pass(clock, 3 * 60_000);
  expect(keys.slice(3)).toEqual([
    "schedule:minute:2026-11-21T11:03:00.000Z#1",
    "schedule:minute:2026-11-21T11:04:00.000Z#1",
    "schedule:minute:2026-11-21T11:05:00.000Z#1",
  ]);
  await pass(clock, hour);
  expect(keys.slice(6).filter((key) => key.startsWith("schedule:day"))).toEqual([]);
  expect(keys.length).toBeGreaterThanOrEqual(65);
});

test("after the clock is set forward an hour, a schedule makes up for missed times once, and runs at its new times", async () => {
  const { engine, clock } = open();
  const keys: string[] = [];
  const run: EngineHandlers["run"] = async (_, { idempotency_key }) => void keys.push(`${idempotency_key}`);
  await engine.start(handlers({ run }));
  await engine.putSchedule({ name: "minute", workflow: "w", cron: "* * * * *" });
  await pass(clock, 5_000);
  clock.set(clock.now() + hour);
  await pass(clock, 58_000);
  expect(keys).toEqual([
    "schedule:minute:2026-11-21T12:01:00.000Z",
    "schedule:minute:2026-11-21T13:01:00.000Z",
  ]);
});

test.each([
  ["back", -hour],
  ["forward", hour],
])("no process takes over from a live holder when the clock is set %s an hour", async (_, jump) => {
  const folder = temporaryFolder();
  const clock = createManualClock(noon);
  const { engine } = open({ clock, folder });
  const standby = open({ clock, folder }).engine;
  const fences: number[] = [];
  const end = gate();
  const dispatch: EngineHandlers["dispatch"] = async ({ fence, signal }) => {
    fences.push(fence);
    await end.opened;
    return signal.aborted;
  };
  await engine.start(handlers({ dispatch }));
  await standby.start(handlers({ dispatch }));
  const { dispatch_id } = await engine.admit({ ...key, input: 1 });
  await pass(clock, 1_000);
  clock.set(clock.now() + jump);
  await pass(clock, 15_000);
  end.open();
  await pass(clock, 1_000);
  expect(await engine.getDispatch(dispatch_id)).toMatchObject({ status: "completed", result: false });
  expect(fences).toHaveLength(1);
});

test("onClockSet gets each change of the clock once, in both directions, but no small corrections", async () => {
  const { engine, clock } = open();
  const reported: number[] = [];
  await engine.start({ ...handlers({}), onClockSet: (byMs) => void reported.push(Math.round(byMs / 1_000)) });
  await pass(clock, 5_000);
  for (const jump of [hour, -2 * hour, 500]) {
    clock.set(clock.now() + jump);
    await pass(clock, 5_000);
  }
  expect(reported).toEqual([3_600, -7_200]);
});

test("nothing is removed while the clock is a year ahead", async () => {
  const { engine, clock } = open();
  await engine.start(handlers({}));
  const { dispatch_id } = await engine.admit({ ...key, input: 1 });
  await engine.awaitDispatch(dispatch_id);
  clock.set(clock.now() + 365 * 24 * hour);
  await pass(clock, 3 * 60_000);
  expect(await engine.getDispatch(dispatch_id)).toBeDefined();
  clock.set(clock.now() - 365 * 24 * hour);
  await pass(clock, 3 * 60_000);
  expect(await engine.getDispatch(dispatch_id)).toBeDefined();
});

test("after the clock was set forward, no session counts as old until the same time has passed", async () => {
  const clock = createManualClock(noon);
  const engine = createEmbeddedEngine({ clock, limits: { retentionMs: hour, longestRetentionMs: 3 * hour } });
  opened.push(engine);
  await engine.start(handlers({}));
  await pass(clock, 3_000);
  expect(await engine.mayForget(key, 0)).toBe(true);
  clock.set(clock.now() + 1_000 * hour);
  expect(await engine.mayForget(key, 0)).toBe(false);
  await pass(clock, 3_000);
  clock.set(clock.now() - 1_000 * hour);
  await pass(clock, 2 * hour);
  expect(await engine.mayForget(key, 0)).toBe(false);
  await pass(clock, hour + 10_000);
  expect(await engine.mayForget(key, 0)).toBe(true);
});
