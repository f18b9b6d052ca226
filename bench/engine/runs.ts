/**
 * Runs: steps compared with the same inserts by hand and the same fsync per group, the replay of a long run,
 * and the cost of waiting runs. `node --expose-gc bench/engine/runs.ts`
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import type { EngineHandlers, RunContext } from "../../src/engine/contract.ts";
import { createEmbeddedEngine } from "../../src/engine/embedded/create-embedded-engine.ts";
import { openFloor } from "./floor.ts";

const root = mkdtempSync(join(tmpdir(), "kit-bench-runs-"));
let folders = 0;
const newPlace = (): string => {
  folders += 1;
  return join(root, String(folders));
};
const dispatch = async (): Promise<void> => undefined;

async function withEngine<Value>(
  run: EngineHandlers["run"],
  work: (engine: ReturnType<typeof createEmbeddedEngine>) => Promise<Value>,
): Promise<Value> {
  const engine = createEmbeddedEngine({ folder: newPlace(), limits: { waiting: 100_000 } });
  await engine.start({ dispatch, run });
  try {
    return await work(engine);
  } finally {
    await engine.drain({ timeoutMs: 0 });
  }
}

async function walk(context: RunContext, steps: number): Promise<void> {
  for (let step = 0; step < steps; step += 1) await context.step("step", () => ({ step }));
}

/** Steps per second of a number of concurrent runs. */
function stepsPerSecond(runs: number, steps: number): Promise<number> {
  return withEngine(
    (context) => walk(context, steps),
    async (engine) => {
      const started = performance.now();
      const receipts = Array.from({ length: runs }, () => engine.startRun({ workflow: "w", payload: {} }));
      await Promise.all(receipts.map(async (receipt) => engine.awaitRun((await receipt).run_id)));
      return (runs * steps * 1_000) / (performance.now() - started);
    },
  );
}

/** The same rows by hand: one insert per caller and turn, one fsync per turn. */
async function insertsPerSecond(callers: number, turns: number): Promise<number> {
  const floor = openFloor(`${newPlace()}.db`);
  const started = performance.now();
  let id = 0;
  await Promise.all(
    Array.from({ length: callers }, async () => {
      for (let turn = 0; turn < turns; turn += 1) {
        id += 1;
        await floor.insert(id, `{"step":${turn}}`);
      }
    }),
  );
  const perSecond = (callers * turns * 1_000) / (performance.now() - started);
  floor.close();
  return perSecond;
}

/** The time from the signal that wakes a run with a number of recorded steps to its next step, in ms. */
function resumeMs(steps: number): Promise<number> {
  let resumed = 0;
  const run = async (context: RunContext): Promise<void> => {
    await walk(context, steps);
    await context.waitFor("go");
    resumed = performance.now();
  };
  return withEngine(run, async (engine) => {
    const { run_id } = await engine.startRun({ workflow: "w", payload: {} });
    while ((await engine.getRun(run_id))?.status !== "waiting") await setTimeout(50);
    const started = performance.now();
    await engine.signal(run_id, { name: "go" });
    await engine.awaitRun(run_id);
    return resumed - started;
  });
}

/** Memory per waiting run, in bytes, and the share of a core that all of them use. */
function costOfWaiting(runs: number): Promise<{ readonly bytes: number; readonly cpu: number }> {
  const run = async (context: RunContext): Promise<void> => {
    const held = Array.from({ length: 1_000 }, (_, index) => index);
    await context.step("first", () => held.length);
    await Promise.race([context.waitFor("approval"), context.sleep(3_600_000)]);
  };
  return withEngine(run, async (engine) => {
    const memory = (): number => {
      globalThis.gc?.();
      globalThis.gc?.();
      const { heapUsed, external } = process.memoryUsage();
      return heapUsed + external;
    };
    await setTimeout(500);
    const before = memory();
    await Promise.all(Array.from({ length: runs }, () => engine.startRun({ workflow: "w", payload: {} })));
    let waiting = 0;
    while (waiting < runs) {
      await setTimeout(500);
      waiting = 0;
      for (let cursor: string | undefined = ""; cursor !== undefined; ) {
        const page = await engine.listRuns({ status: "waiting", limit: 1_000, ...(cursor && { cursor }) });
        waiting += page.items.length;
        cursor = page.next_cursor;
      }
    }
    await setTimeout(1_000);
    const bytes = (memory() - before) / runs;
    const started = process.cpuUsage();
    await setTimeout(5_000);
    const { user, system } = process.cpuUsage(started);
    return { bytes, cpu: (user + system) / 5_000_000 };
  });
}

const round = (value: number): string => Math.round(value).toLocaleString("en");
const loads = [
  { callers: 1, each: 2_000 },
  { callers: 64, each: 300 },
];
for (const { callers, each } of loads) {
  const floor = await insertsPerSecond(callers, each);
  const steps = await stepsPerSecond(callers, each);
  const ratio = (floor / steps).toFixed(2);
  console.log(`${callers} at a time: ${round(steps)} steps/s, ${round(floor)} bare inserts/s (${ratio}×)`);
}
console.log(`a run of 1,000 steps goes on after ${(await resumeMs(1_000)).toFixed(1)} ms`);
const { bytes, cpu } = await costOfWaiting(5_000);
console.log(`5,000 waiting runs: ${round(bytes)} bytes each, ${(cpu * 100).toFixed(2)} % of a core`);
rmSync(root, { recursive: true });
