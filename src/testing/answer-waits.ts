import { KitError } from "../base/kit-error.ts";
import type { Engine } from "../engine/contract.ts";
import type { RunRecord, RunWait } from "../protocol/run.ts";
import type { ManualClock } from "./manual-clock.ts";

export interface WaitAnswers {
  /**
   * The results of `ctx.waitFor(name)`, by the signal's name: a value, or a function of the waiting run, which is called
   * for each wait.
   */
  readonly signals?: Readonly<Record<string, unknown>> | undefined;
  /** Runs at the speed of the system's clock. During a wait with a time limit, it is advanced to the end of the wait. */
  readonly clock?: ManualClock | undefined;
}

/** The time between two checks of the runs, in ms. */
const pollMs = 10;
const minuteMs = 60_000;
/** A wait that ends within this time is not cut short, in ms. */
const patienceMs = 5_000;

/**
 * Answers what runs wait for, until it is disposed of. A run that would wait for ever, or longer than a test should, is
 * cancelled, and `stuck` rejects with `conflict`, whose message names what the run waits for.
 */
export function answerWaits(
  engine: Engine,
  { signals = {}, clock }: WaitAnswers,
): Disposable & { readonly stuck: Promise<never> } {
  const stuck = Promise.withResolvers<never>();
  stuck.promise.catch(() => undefined);
  let isLooking = false;
  const inspect = async (): Promise<void> => {
    const { items } = await engine.listRuns({ status: "waiting" });
    for (const run of items) {
      const waits = run.waiting_for ?? [];
      const withName = waits.find(({ signal }) => signal !== undefined && Object.hasOwn(signals, signal));
      if (withName?.signal !== undefined) await provide(run, withName.signal);
      else if (waits.length > 0) await pass(run, waits);
    }
  };
  const provide = async (run: RunRecord, name: string): Promise<void> => {
    const value = signals[name];
    const payload: unknown = typeof value === "function" ? value(run) : value;
    await engine.signal(run.run_id, { name, payload });
  };
  const pass = async (run: RunRecord, waits: readonly RunWait[]): Promise<void> => {
    const ends = waits.flatMap(({ until }) => (until === undefined ? [] : [Date.parse(until)]));
    const left = Math.min(...ends) - (clock?.now() ?? Date.now());
    if (clock !== undefined && ends.length > 0) {
      // The machine is asleep except for the last minute: code that polls every few milliseconds would poll a million
      // times in a day. Sleepers check the time each minute.
      const last = Math.min(Math.max(0, left), minuteMs);
      clock.suspend(left - last);
      await clock.advance(last);
    } else if (left > patienceMs) {
      // Before the cancellation, because the run's own error only says that it was cancelled.
      stuck.reject(stuckError(run, waits));
      await engine.cancelRun(run.run_id);
    }
  };
  const timer = setInterval(() => {
    if (isLooking) return;
    isLooking = true;
    void inspect()
      .then(() => clock?.advance(pollMs))
      .catch(stuck.reject)
      .finally(() => {
        isLooking = false;
      });
  }, pollMs);
  return { stuck: stuck.promise, [Symbol.dispose]: () => clearInterval(timer) };
}

function stuckError({ workflow }: RunRecord, waits: readonly RunWait[]): KitError {
  const names = waits.flatMap(({ signal }) => (signal === undefined ? [] : [signal]));
  const what =
    names.length === 0
      ? `until ${waits[0]?.until}`
      : `for ${names.map((name) => `the signal "${name}"`).join(" and ")}`;
  const [first = ""] = names;
  return new KitError({
    code: "conflict",
    message: `The run of "${workflow}" waits ${what}, and nothing in the test ends the wait.`,
    hint:
      names.length === 0
        ? "Pass a clock to the test: openTestApp({ …, clock: createManualClock() })."
        : `Pass the signal to the test: openTestApp({ …, signals: { ${JSON.stringify(first)}: … } }).`,
  });
}
