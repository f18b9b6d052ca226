/**
 * `npm run bench:cluster`: the throughput of several machines over one Postgres, compared with the embedded engine, Restate alone and
 * DBOS alone, in one run: inputs without work, with two workers; the processor time of each process; and how long work waits
 * after a worker was killed or has frozen. `agent`: dispatches over HTTP to new instances of an agent, on one node and on three. Exits
 * with 1 if a target is missed.
 *
 * `--inputs N` (2,000), `--rounds N` (1; 3 for figures), `--only postgres,restate,agent`, `--no-faults`.
 */
import { availableParallelism, loadavg } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { AgentCluster } from "../../tests/cluster/harness/agent-cluster.ts";
import { Database } from "../../tests/cluster/harness/database.ts";
import { processorMs } from "./processor-time.ts";
import type { Subject } from "./subject.ts";
import { type SubjectName, startSubject } from "./subjects.ts";

const names: readonly SubjectName[] = ["postgres", "embedded", "restate", "dbos"];
const { values } = parseArgs({
  options: {
    inputs: { type: "string", default: "2000" },
    rounds: { type: "string", default: "1" },
    only: { type: "string", default: [...names, "agent"].join(",") },
    faults: { type: "boolean", default: true },
  },
  allowNegative: true,
});
const inputs = Number(values.inputs);
const only = values.only.split(",");
const sessions = 300;
const callers = 64;

interface Throughput {
  readonly donePerSecond: number;
  readonly admittedPerSecond: number;
  readonly receiptMs: number;
  readonly endToEndMs: number;
  /** Milliseconds of processor time per input, by process. */
  readonly cpu: Readonly<Record<string, number>>;
}

const figures = new Map<SubjectName, Throughput[]>();
const misses: string[] = [];
// Accepted work must be on disk, in kit as in the other engines.
const database = await Database.start(["fsync=on", "shared_buffers=256MB"]);

try {
  print(
    `${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}, Node ${process.version}, ${inputs} inputs`,
  );
  for (let round = 0; round < Number(values.rounds); round += 1) {
    for (const name of names) if (only.includes(name)) await measure(name);
  }
  report();
  if (only.includes("agent")) for (const nodes of [1, 3]) await overHttp(nodes);
  if (values.faults && only.includes("postgres")) {
    await takeover("SIGKILL", 500);
    await takeover("SIGSTOP", 4_000);
  }
} finally {
  await database.remove();
}
if (misses.length > 0) {
  print(`\nMissed: ${misses.join(", ")}.`);
  process.exitCode = 1;
}

async function measure(name: SubjectName): Promise<void> {
  const subject = await startSubject(name, { database, workers: 2 });
  if (typeof subject === "string") {
    print(`${name}: left out, ${subject}`);
    return;
  }
  try {
    figures.set(name, [...(figures.get(name) ?? []), await throughput(subject)]);
  } finally {
    await subject.stop();
  }
}

async function throughput(subject: Subject): Promise<Throughput> {
  let sent = 0;
  const admit = async (session: string): Promise<number> => {
    sent += 1;
    const since = performance.now();
    await subject.admit({ id: `${sent}`, session });
    return performance.now() - since;
  };
  const untilDone = async (count: number): Promise<void> => {
    while ((await subject.done()) < count) await delay(10);
  };
  for (let warm = 0; warm < 100; warm += 1) await admit(`w${warm % 10}`);
  await untilDone(sent);
  const receipts: number[] = [];
  const ends: number[] = [];
  for (let one = 0; one < 30; one += 1) {
    const since = performance.now();
    receipts.push(await admit(`q${one}`));
    while ((await subject.done()) < sent) await delay(1);
    ends.push(performance.now() - since);
  }
  const before = timesOf(subject);
  const base = sent;
  const since = performance.now();
  let next = 0;
  await Promise.all(
    Array.from({ length: callers }, async () => {
      for (let index = next++; index < inputs; index = next++) await admit(`s${index % sessions}`);
    }),
  );
  const admitted = performance.now() - since;
  while ((await subject.done()) < base + inputs) await delay(20);
  const took = performance.now() - since;
  const after = timesOf(subject);
  return {
    donePerSecond: (inputs * 1_000) / took,
    admittedPerSecond: (inputs * 1_000) / admitted,
    receiptMs: quantile(receipts, 0.5),
    endToEndMs: quantile(ends, 0.5),
    cpu: Object.fromEntries(
      Object.entries(after).map(([name, ms]) => [name, (ms - Number(before[name])) / inputs]),
    ),
  };
}

/** Dispatches over HTTP to new instances of an agent whose model answers at once, and what each costs Postgres. */
async function overHttp(nodes: number): Promise<void> {
  const cluster = await AgentCluster.start(nodes);
  try {
    await cluster.dispatch(600, 24);
    const costs = await cluster.costsOf(() => cluster.dispatch(inputs, 24));
    const each = (count: number): string => (count / inputs).toFixed(2);
    print(
      [
        `over HTTP, with an agent, ${nodes} nodes`,
        `${(inputs / costs.seconds).toFixed(0)} done/s`,
        `Postgres: ${each(costs.processorMs)} ms of processor each`,
        `${each(costs.statements)} statements, ${each(costs.planned)} planned`,
        `${each(costs.flushes)} flushes, ${(costs.walBytes / inputs).toFixed(0)} bytes of WAL`,
      ].join("  "),
    );
  } finally {
    await cluster.stop();
  }
}

function timesOf({ processes }: Subject): Record<string, number> {
  return Object.fromEntries(Object.entries(processes).map(([name, pids]) => [name, processorMs(pids())]));
}

function report(): void {
  for (const [name, rounds] of figures) {
    const of = (figure: (one: Throughput) => number): number => quantile(rounds.map(figure), 0.5);
    const cpu = Object.keys(rounds[0]?.cpu ?? {}).map(
      (part) => `${part} ${of((one) => one.cpu[part] ?? 0).toFixed(2)}`,
    );
    print(
      [
        name.padEnd(9),
        `${of(({ donePerSecond }) => donePerSecond)
          .toFixed(0)
          .padStart(6)} done/s`,
        `${of(({ admittedPerSecond }) => admittedPerSecond)
          .toFixed(0)
          .padStart(6)} admitted/s`,
        `receipt ${of(({ receiptMs }) => receiptMs).toFixed(1)} ms`,
        `end to end ${of(({ endToEndMs }) => endToEndMs).toFixed(0)} ms`,
        `${of(totalOf).toFixed(2)} ms of processor each (${cpu.join(" + ")})`,
      ].join("  "),
    );
  }
  const rate = (name: SubjectName): number =>
    quantile(
      (figures.get(name) ?? []).map((one) => one.donePerSecond),
      0.5,
    );
  for (const [name, least] of [
    ["restate", 4],
    ["dbos", 6],
  ] as const) {
    if (!figures.has(name) || !figures.has("postgres")) continue;
    judge(`done per second, times ${name}'s`, rate("postgres") / rate(name), (ratio) => ratio >= least);
  }
  const kit = figures.get("postgres");
  if (kit !== undefined)
    judge("ms of processor for each input", quantile(kit.map(totalOf), 0.5), (ms) => ms <= 1.5);
}

function totalOf({ cpu }: Throughput): number {
  return Object.values(cpu).reduce((sum, ms) => sum + ms, 0);
}

/** The time from the end of a worker until another worker begins its running inputs. */
async function takeover(signal: "SIGKILL" | "SIGSTOP", limitMs: number): Promise<void> {
  const waits: number[] = [];
  const subject = await startSubject("postgres", { database, workers: 3 });
  if (typeof subject === "string") throw new Error(subject);
  try {
    for (let session = 0; session < 24; session += 1) {
      for (let input = 0; input < 2; input += 1) {
        await subject.admit({ id: `${session}/${input}`, session: `s${session}`, ms: 600 });
      }
    }
    const [victim, ...others] = subject.workers;
    while (subject.workers.some(({ report }) => report.begun.length < 4)) await delay(20);
    const at = Date.now();
    victim?.kill(signal);
    const cut = new Set(victim?.report.begun.map(({ id }) => id));
    while ((await subject.done()) < 48) await delay(50);
    for (const { report } of others) {
      for (const { id, at: begun } of report.begun) if (cut.has(id) && begun > at) waits.push(begun - at);
    }
  } finally {
    await subject.stop();
  }
  const what = signal === "SIGKILL" ? "takeover after a kill" : "takeover after a freeze";
  print(`${what}: p50 ${quantile(waits, 0.5)} ms, longest ${quantile(waits, 1)} ms, ${waits.length} inputs`);
  judge(`${what}, p50 ms`, quantile(waits, 0.5), (ms) => ms < limitMs);
}

function judge(name: string, value: number, isMet: (value: number) => boolean): void {
  const isReached = isMet(value);
  print(`${name}: ${value.toFixed(2)} ${isReached ? "met" : "MISSED"}`);
  if (!isReached) misses.push(name);
}

function quantile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function print(line: string): void {
  console.log(line);
}
