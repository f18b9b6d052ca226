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
afterEach(async () => {
  await Promise.all(opened.splice(0).map((engine) => engine.drain({ timeoutMs: 0 })));
});

function open(): { engine: Engine; clock: ManualClock } {
  const clock = createManualClock(noon);
  const engine = createEmbeddedEngine({ clock });
  opened.push(engine);
  return { engine, clock };
}

/** Lets some time pass, and what hangs on it be done. */
async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 1_000) await clock.advance(Math.min(left, 1_000));
  for (let turn = 0; turn < 50; turn += 1) await setImmediate();
}

test("after a machine was asleep, what is due begins within a minute: runs that slept, and schedules", async () => {
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
  clock.set(noon + 12 * hour);
  await pass(clock, 70_000);
  expect(begun.toSorted()).toEqual(["scheduled", "sleeps"]);
});

test("a drain does not wait half a minute for a person's word", async () => {
  const { engine, clock } = open();
  const asked = gate();
  const reasons: unknown[] = [];
  await engine.start(
    handlers({
      async dispatch({ standAside, signal }) {
        standAside();
        asked.open();
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        reasons.push(signal.reason instanceof KitError ? signal.reason.meta : signal.reason);
      },
    }),
  );
  await engine.admit({ ...key, input: 1 });
  await asked.opened;
  const drained = engine.drain({ timeoutMs: 30_000 });
  await pass(clock, 4_000);
  expect(reasons).toEqual([]);
  await pass(clock, 2_000);
  expect(reasons).toEqual([{ will_resume: true }]);
  await drained;
});

test("what was under way when a machine fell asleep goes on, where nobody else has taken it", async () => {
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
  clock.set(noon + 12 * hour);
  await pass(clock, 10_000);
  letEnd();
  expect(await engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed", result: false });
  expect(attempts).toEqual([1]);
});

test("a clock that is set back keeps no session waiting for its next attempt", async () => {
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

test("a schedule that was put while the clock was far ahead comes at its time, and no occurrence comes twice", async () => {
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
