import { Session } from "node:inspector/promises";
import { expect, test } from "vitest";
import { systemClock } from "../../../base/clock.ts";
import type { JobEnd } from "./job.ts";
import { JobQueue } from "./job-queue.ts";

/** Counts the executed blocks of this folder's code, loops included: a measure of work that does not depend on the machine. */
async function countWork(work: () => Promise<void>): Promise<number> {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  await work();
  const { result } = await session.post("Profiler.takePreciseCoverage");
  await session.post("Profiler.stopPreciseCoverage");
  session.disconnect();
  const queueFiles = result.filter(
    ({ url }) => url.includes("/engine/shared/queue/") && !url.includes(".test."),
  );
  return queueFiles
    .flatMap(({ functions }) => functions.flatMap(({ ranges }) => ranges))
    .reduce((sum, { count }) => sum + count, 0);
}

test("a claim costs the same with 20,000 waiting jobs as with 1,100, in one line or in many", async () => {
  const measure = async (backlog: number, line: (number: number) => string): Promise<number> => {
    const queue = new JobQueue({ clock: systemClock, slots: 1 });
    const done = Promise.withResolvers<void>();
    let begun = 0;
    const begin = async (): Promise<JobEnd> => {
      begun += 1;
      if (begun < 1_000) return { ended: true };
      done.resolve();
      return await new Promise(() => undefined);
    };
    for (let number = 0; number < backlog; number += 1) {
      const name = line(number);
      queue.join({ id: `${number}`, line: name, owner: name, begin });
    }
    return await countWork(async () => {
      queue.open();
      await done.promise;
    });
  };
  for (const line of [() => "one", (number: number) => `${number}`]) {
    const few = await measure(1_100, line);
    expect(few).toBeGreaterThan(10_000);
    // A search through all waiting work would cost about ten times as much; V8's count of the same work varies by a seventh.
    expect(await measure(20_000, line)).toBeLessThan(few * 1.5);
  }
});
