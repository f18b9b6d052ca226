/**
 * Counts what one prompt of kit costs: `node --expose-gc --min-semi-space-size=256 --max-semi-space-size=256 counts-child.ts
 * <script> <memory|file> <folder>`; prints JSON. The young space must hold a whole round: a collection would hide the bytes before it.
 */
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync, StatementSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { promiseHooks } from "node:v8";
import { loadSubject } from "../runtime/subjects.ts";
import type { PromptCounts } from "./judge-counts.ts";

/** Prompts before the first round: compiled code blurs the bytes of earlier ones. */
const warmUp = 3_000;
const rounds = 5;
const perRound = 300;

const [script, place, folder = ""] = process.argv.slice(2) as ["answer" | "tools", "memory" | "file", string];
let calls = { timers: 0, statements: 0 };
countCalls(globalThis, ["setTimeout", "setInterval"], "timers");
countCalls(StatementSync.prototype, ["run", "get", "all"], "statements");
countCalls(DatabaseSync.prototype, ["exec"], "statements");

const subject = await loadSubject("kit");
const opened = await subject.open(
  place === "file" ? { script, file: join(folder, "counts.db") } : { script },
);
let next = 0;
const prompts = async (count: number): Promise<void> => {
  for (let index = 0; index < count; index += 1) {
    next += 1;
    await opened.prompt(`session-${next}`);
  }
};
await prompts(warmUp);
const bytes: number[] = [];
for (let round = 0; round < rounds; round += 1) {
  await collect();
  const before = process.memoryUsage().heapUsed;
  await prompts(perRound);
  bytes.push((process.memoryUsage().heapUsed - before) / perRound);
}
await collect();
const before = process.memoryUsage().heapUsed;
for (let done = 0; done < perRound; done += 10) {
  await prompts(10);
  globalThis.gc?.({ type: "minor" });
}
const kept = Math.round((process.memoryUsage().heapUsed - before) / perRound);
let promises = 0;
const stop = promiseHooks.onInit(() => {
  promises += 1;
});
calls = { timers: 0, statements: 0 };
await prompts(perRound);
stop();
const { timers, statements } = calls;
const waiting = await waitingBytes();
const counts: PromptCounts = {
  // The collector runs between rounds only; anything else that it does makes a round smaller, or lasting data makes it larger.
  bytes: Math.round(bytes.toSorted((one, other) => one - other)[Math.floor(rounds / 2)] ?? Number.NaN),
  kept,
  waiting,
  promises: Math.round(promises / perRound),
  timers: Math.round(timers / perRound),
  statements: Math.round(statements / perRound),
};
console.log(JSON.stringify(counts));
process.exit(0);

/** The bytes that a prompt keeps while its last model call waits: many wait at once. */
async function waitingBytes(): Promise<number> {
  let { promise: released, resolve: release } = Promise.withResolvers<void>();
  release();
  let begun = 0;
  const file = join(folder, "waiting", "counts.db");
  if (place === "file") mkdirSync(dirname(file));
  const held = await subject.open({
    script,
    ...(place === "file" && { file }),
    delay: () => {
      begun += 1;
      return released;
    },
  });
  const round = (name: string): Promise<unknown> =>
    Promise.all(Array.from({ length: perRound }, (_, index) => held.prompt(`${name}-${index}`)));
  await round("before");
  await collect();
  const since = process.memoryUsage().heapUsed;
  ({ promise: released, resolve: release } = Promise.withResolvers<void>());
  const running = round("waiting");
  while (begun < 2 * perRound) await sleep(5);
  await collect();
  const bytes = Math.round((process.memoryUsage().heapUsed - since) / perRound);
  release();
  await running;
  return bytes;
}

/** Replaces methods by ones that count their calls. */
function countCalls(of: object, names: readonly string[], kind: keyof typeof calls): void {
  for (const name of names) {
    const method = Reflect.get(of, name) as (...args: unknown[]) => unknown;
    const counted = function (this: unknown, ...args: unknown[]): unknown {
      calls[kind] += 1;
      return method.apply(this, args);
    };
    Reflect.set(of, name, Object.assign(counted, method));
  }
}

async function collect(): Promise<void> {
  for (let time = 0; time < 2; time += 1) {
    globalThis.gc?.();
    await sleep(20);
  }
}
