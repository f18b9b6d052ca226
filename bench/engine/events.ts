/**
 * `node bench/engine/events.ts`: the cost of the event log per append and per delivered event, compared with
 * the floor, an array push and the JSON of the event, which any log needs.
 *
 * Cases take turns over `--rounds` (5); the table has medians.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { parseArgs } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { systemClock } from "../../src/base/clock.ts";
import { openEventLog } from "../../src/engine/embedded/events/event-log.ts";
import type { StoredEventLog } from "../../src/engine/shared/events/event-log.ts";
import type { KitEvent } from "../../src/protocol/event.ts";
import { medianOf } from "../runtime/timing.ts";

const events = 50_000;
/** Events between two turns of the event loop: about as many as a fast model sends at once. */
const burst = 100;
const idleReaders = 1_000;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
const { values } = parseArgs({ options: { rounds: { type: "string", default: "5" } } });
const cases = {
  "push and JSON (the floor)": floor,
  "append, one stream": () => appendTo(1, 0),
  "append, 1,000 streams": () => appendTo(1_000, 0),
  "append, with 1,000 idle subscriptions": () => appendTo(1, idleReaders),
  "append and delivery to a live reader": () => deliver(1),
  "the same, to ten readers": () => deliver(10),
  "reading from disk": readBack,
} satisfies Record<string, () => Promise<number>>;

const samples = new Map<string, number[]>();
for (let round = 0; round <= Number(values.rounds); round += 1) {
  for (const [name, measure] of Object.entries(cases)) {
    const micros = await measure();
    // The first round is a warm-up.
    if (round > 0) samples.set(name, [...(samples.get(name) ?? []), micros]);
  }
}
const base = medianOf(samples.get("push and JSON (the floor)") ?? []);
for (const [name, micros] of samples) {
  const median = medianOf(micros);
  console.log(`${name.padEnd(40)} ${median.toFixed(2).padStart(7)} µs  ${(median / base).toFixed(1)}×`);
}
const idle = await idleCost();
console.log(`${"an idle subscription".padEnd(40)} ${(idle / 1_000).toFixed(2).padStart(7)} kB`);

function event(index: number): KitEvent {
  return {
    index,
    timestamp: "2026-11-21T10:00:00.000Z",
    agent: "reviewer",
    instance_id: "pr-7",
    session: "default",
    operation_id: "op_01JD5X8G9K2M4N6P8Q0R2S4T6V",
    turn_id: "turn_1",
    type: "text_delta",
    text: "a few words ",
  };
}

async function floor(): Promise<number> {
  const list: KitEvent[] = [];
  const texts: string[] = [];
  return await perEvent(events, (index) => {
    const made = event(index);
    list.push(made);
    texts.push(JSON.stringify(made));
  });
}

/** Microseconds of CPU per event; turns of the event loop in between let timers run. */
async function perEvent(count: number, work: (index: number) => void): Promise<number> {
  const before = process.cpuUsage();
  for (let index = 1; index <= count; index += 1) {
    work(index);
    if (index % burst === 0) await setImmediate();
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

async function withLog<Value>(use: (log: StoredEventLog) => Promise<Value>): Promise<Value> {
  const folder = mkdtempSync(join(tmpdir(), "kit-bench-events-"));
  const lease = { fence: 1, signal: new AbortController().signal };
  const log = openEventLog({ folder, clock: systemClock, lease });
  try {
    return await use(log);
  } finally {
    await log.close();
    rmSync(folder, { recursive: true });
  }
}

function appendTo(streams: number, idleSubscriptions: number): Promise<number> {
  return withLog(async (log) => {
    for (let reader = 0; reader < idleSubscriptions; reader += 1) wait(log, `agent/idle/${reader}`);
    const names = Array.from({ length: streams }, (_, number) => `agent/reviewer/${number}`);
    let at = 0;
    return await perEvent(events, (index) => {
      log.append(names[at] ?? "", event(Math.ceil(index / streams)));
      at = (at + 1) % streams;
    });
  });
}

function wait(log: StoredEventLog, stream: string): void {
  // Ends when the log closes.
  log.subscribe(stream)[Symbol.asyncIterator]().next().catch(console.error);
}

/** The cost per delivered event; the readers share the cost of the append. */
function deliver(readers: number): Promise<number> {
  return withLog(async (log) => {
    const stream = "agent/reviewer/1";
    const reading = Array.from({ length: readers }, async () => {
      let count = 0;
      for await (const { index } of log.subscribe(stream)) count += Math.sign(index);
      return count;
    });
    const micros = await perEvent(events, (index) => log.append(stream, event(index)));
    log.end(stream);
    const counts = await Promise.all(reading);
    if (counts.some((count) => count !== events)) throw new Error(`Readers got ${counts.join(", ")} events.`);
    return micros / readers;
  });
}

function readBack(): Promise<number> {
  return withLog(async (log) => {
    const stream = "agent/reviewer/1";
    await perEvent(events, (index) => log.append(stream, event(index)));
    log.end(stream);
    await log.flush();
    await systemClock.sleep(150);
    const before = process.cpuUsage();
    let count = 0;
    for await (const { index } of log.subscribe(stream)) count += Math.sign(index);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / count;
  });
}

/** Bytes of memory per waiting subscription. */
function idleCost(): Promise<number> {
  return withLog(async (log) => {
    collect();
    const before = process.memoryUsage().heapUsed;
    const count = 20_000;
    for (let reader = 0; reader < count; reader += 1) wait(log, `agent/idle/${reader}`);
    await setImmediate();
    collect();
    return (process.memoryUsage().heapUsed - before) / count;
  });
}
