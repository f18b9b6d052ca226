import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { KitError } from "../../../base/kit-error.ts";
import { createManualClock } from "../../../testing/manual-clock.ts";
import type { StepOptions, StepWork } from "../../contract.ts";
import { attemptStep } from "./run-context.ts";

function begin(work: StepWork<unknown>, options: StepOptions, clock = createManualClock()) {
  const run = new AbortController();
  const call = { clock, name: "s", idempotencyKey: "run_1:1", signal: run.signal, options };
  return { clock, run, result: attemptStep(work, call).catch((error: unknown) => error) };
}

test("the pause between attempts doubles each time, up to a minute", async () => {
  const at: number[] = [];
  const clock = createManualClock();
  const { result } = begin(
    () => {
      at.push(clock.now());
      throw new Error(`attempt ${at.length}`);
    },
    { attempts: 10 },
    clock,
  );
  await clock.advance(10 * 60_000);
  expect(await result).toMatchObject({ message: "attempt 10" });
  const pauses = at.slice(1).map((time, index) => time - (at[index] ?? 0));
  expect(pauses).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
});

test("each attempt has the whole time limit, and its own signal", async () => {
  const signals: AbortSignal[] = [];
  const { clock, run, result } = begin(
    ({ signal, attempt }) => {
      signals.push(signal);
      return attempt === 3 ? "there" : new Promise(() => undefined);
    },
    { attempts: 3, timeoutMs: 1_000, backoffMs: 0 },
  );
  await clock.advance(999);
  expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
  await clock.advance(1_100);
  expect(await result).toBe("there");
  run.abort();
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, false]);
});

test("the signal of the run ends the attempt, or the pause before the next, at once", async () => {
  const inAttempt = begin(() => new Promise(() => undefined), { attempts: 5, timeoutMs: 60_000 });
  inAttempt.run.abort("stop");
  expect(await inAttempt.result).toBe("stop");
  let attempts = 0;
  const between = begin(
    () => {
      attempts += 1;
      throw new Error("no");
    },
    { attempts: 5 },
  );
  await setImmediate();
  between.run.abort("stop");
  expect(await between.result).toBe("stop");
  expect(attempts).toBe(1);
});

test("an error that says that no retry helps ends the step at its first attempt", async () => {
  let attempts = 0;
  const { result } = begin(
    () => {
      attempts += 1;
      throw new KitError({ code: "model_error", message: "Refused.", meta: { retryable: false } });
    },
    { attempts: 5 },
  );
  expect(await result).toMatchObject({ message: "Refused." });
  expect(attempts).toBe(1);
});
