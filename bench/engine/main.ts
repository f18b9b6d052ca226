/**
 * `npm run bench:engine`: the time in which the embedded engine accepts inputs and finishes them, compared with
 * the floor: plain inserts into one table of SQLite, grouped by hand, with the same fsync per group. Floor
 * and engine take turns in one process; the table has medians over the rounds. Exits with 1 if a
 * target is missed.
 *
 * `--rounds N` (5), `--inputs N` (6,000 per round).
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createEmbeddedEngine } from "../../src/engine/embedded/create-embedded-engine.ts";
import { openFloor } from "./floor.ts";

const callers = 64;
const targets = { admissionsPerSecond: 3_000, p99Ms: 25, endToEndMs: 5 };

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "5" }, inputs: { type: "string", default: "6000" } },
});
const rounds = Number(values.rounds);
const inputs = Number(values.inputs);
const root = mkdtempSync(join(tmpdir(), "kit-bench-engine-"));
const input = { message: "Which rules apply to src/auth.ts?", sent_at: "2026-11-21T03:00:00.000Z" };
const handlers = { run: async () => undefined, dispatch: async () => ({ text: "None." }) };
const figures = new Map<string, number[]>();

try {
  for (let round = 0; round < rounds; round += 1) await measureRound(round);
} finally {
  rmSync(root, { recursive: true });
}
report();

async function measureRound(round: number): Promise<void> {
  const floor = openFloor(join(root, `floor-${round}.db`));
  await measureLoad("floor, inserts", (id) => floor.insert(id, JSON.stringify(input)));
  floor.close();

  const idle = createEmbeddedEngine({ folder: join(root, `idle-${round}`), limits: { waiting: 1_000_000 } });
  const before = heapUsed();
  await measureLoad("engine, admissions alone", (id) => idle.admit({ ...keyOf(id), input }));
  note("engine, heap per stored input that waits (bytes)", (heapUsed() - before) / inputs);
  await idle.start({ ...handlers, dispatch: () => new Promise(() => undefined) });
  note("engine, heap per input in line (bytes)", (heapUsed() - before) / inputs);
  await idle.drain({ timeoutMs: 0 });

  const busy = createEmbeddedEngine({ folder: join(root, `busy-${round}`), limits: { waiting: 1_000_000 } });
  await busy.start(handlers);
  const ends: Promise<unknown>[] = [];
  const since = performance.now();
  await measureLoad("engine, admissions while it works", async (id) => {
    const { dispatch_id } = await busy.admit({ ...keyOf(id), input });
    ends.push(busy.awaitDispatch(dispatch_id));
  });
  await Promise.all(ends);
  note("engine, seen through per second", (inputs * 1_000) / (performance.now() - since));
  const single: number[] = [];
  for (let id = 0; id < 300; id += 1) {
    const at = performance.now();
    const { dispatch_id } = await busy.admit({ ...keyOf(id), input });
    await busy.awaitDispatch(dispatch_id);
    single.push(performance.now() - at);
  }
  note("engine, end to end, p50 (ms)", quantile(single, 0.5));
  note("engine, end to end, p99 (ms)", quantile(single, 0.99));
  await measureLoad("engine, admissions on top of history", (id) => busy.admit({ ...keyOf(id), input }));
  await busy.drain();
}

/** Concurrent callers, each of which sends one request after the other. */
async function measureLoad(name: string, work: (id: number) => Promise<unknown>): Promise<void> {
  const times: number[] = [];
  let next = 0;
  const since = performance.now();
  const caller = async (): Promise<void> => {
    while (next < inputs) {
      next += 1;
      const at = performance.now();
      await work(next);
      times.push(performance.now() - at);
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  note(`${name} per second`, (inputs * 1_000) / (performance.now() - since));
  note(`${name}, p99 (ms)`, quantile(times, 0.99));
}

function keyOf(id: number): { agent: string; instance_id: string; session: string } {
  return { agent: "guide", instance_id: `instance-${id % 1_000}`, session: "default" };
}

function heapUsed(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

function note(name: string, value: number): void {
  figures.set(name, [...(figures.get(name) ?? []), value]);
}

function quantile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function median(name: string): number {
  return quantile(figures.get(name) ?? [], 0.5);
}

function report(): void {
  for (const name of figures.keys()) {
    const value = median(name);
    console.log(`${name.padEnd(56)} ${value.toFixed(value < 100 ? 2 : 0).padStart(10)}`);
  }
  const rate = (name: string): number => median(`${name} per second`);
  const ratio = (name: string): string => (rate("floor, inserts") / rate(name)).toFixed(2);
  console.log(`\nfloor / engine, admissions alone: ${ratio("engine, admissions alone")}`);
  console.log(`floor / engine, admissions while it works: ${ratio("engine, admissions while it works")}`);
  const misses = [
    rate("engine, admissions while it works") < targets.admissionsPerSecond && "admissions per second",
    median("engine, admissions while it works, p99 (ms)") > targets.p99Ms && "p99 of admission",
    median("engine, end to end, p50 (ms)") > targets.endToEndMs && "end to end",
  ].filter((miss) => miss !== false);
  if (misses.length > 0) {
    console.error(`\nMissed: ${misses.join(", ")}.`);
    process.exitCode = 1;
  }
}
