/**
 * `node bench/cluster/simulate.ts`: estimates the throughput of one Postgres for clusters of up to 100 nodes: a model of the queueing, with
 * the statement times that `npm run bench:cluster` has measured instead of a database. No process and no database is
 * started; it takes seconds.
 *
 * `--dispatch-ms 0.14` processor time of Postgres per input, `--node-ms 0.24` of a node per input, `--cores 4` of Postgres,
 * `--beat-ms 1.2` of a heartbeat with its search for dead nodes, `--sweep-ms 1.1` of a search for work: `node bench/cluster/idle.ts`
 * measures the cost of an idle node, which consists of these.
 */
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    "dispatch-ms": { type: "string", default: "0.14" },
    "node-ms": { type: "string", default: "0.24" },
    "beat-ms": { type: "string", default: "1.2" },
    "sweep-ms": { type: "string", default: "1.1" },
    cores: { type: "string", default: "4" },
  },
});
const dispatchMs = Number(values["dispatch-ms"]);
const nodeMs = Number(values["node-ms"]);
const beatMs = Number(values["beat-ms"]);
const sweepMs = Number(values["sweep-ms"]);
const cores = Number(values.cores);
/** Periods of the engine: heartbeats, and searches for dispatches and runs. */
const beatsPerSecond = 5;
const sweepsPerSecond = 8;
const connectionsPerNode = 22;
const simulatedMs = 5_000;

/** Statements wait for a core of Postgres in the order of their arrival. Deterministic: every run has the same result. */
class Server {
  readonly #free: number[];
  busyMs = 0;

  constructor(count: number) {
    this.#free = Array.from({ length: count }, () => 0);
  }

  /** Returns the time at which the statement ends. */
  run(at: number, ms: number): number {
    const first = this.#free.indexOf(Math.min(...this.#free));
    const end = Math.max(at, this.#free[first] ?? 0) + ms;
    this.#free[first] = end;
    this.busyMs += ms;
    return end;
  }
}

interface Result {
  readonly nodes: number;
  readonly load: number;
  readonly busy: number;
  readonly waitMs: number;
  readonly lateBeats: number;
}

/** Inputs arrive evenly, `load` per second in total; each has a share in two groups of statements: acceptance and execution. */
function simulate(nodes: number, load: number): Result {
  const server = new Server(cores);
  const statements: { at: number; ms: number; kind: "beat" | "sweep" | "input" }[] = [];
  for (let node = 0; node < nodes; node += 1) {
    const offset = (node / nodes) * 200;
    for (let at = offset; at < simulatedMs; at += 1_000 / beatsPerSecond)
      statements.push({ at, ms: beatMs, kind: "beat" });
    for (let at = offset / 2; at < simulatedMs; at += 1_000 / sweepsPerSecond)
      statements.push({ at, ms: sweepMs, kind: "sweep" });
  }
  for (let at = 0; at < simulatedMs; at += 1_000 / load)
    statements.push({ at, ms: dispatchMs, kind: "input" });
  statements.sort((left, right) => left.at - right.at);
  const waits: number[] = [];
  let late = 0;
  for (const { at, ms, kind } of statements) {
    const wait = server.run(at, ms) - at - ms;
    if (kind === "input") waits.push(wait);
    // A node whose heartbeat takes two seconds gives up its work.
    if (kind === "beat" && wait > 2_000) late += 1;
  }
  waits.sort((left, right) => left - right);
  return {
    nodes,
    load,
    busy: server.busyMs / (simulatedMs * cores),
    waitMs: waits[Math.floor(waits.length * 0.99)] ?? 0,
    lateBeats: late,
  };
}

/** The most inputs per second of the nodes at which 99 of 100 wait less than 50 ms and no heartbeat is late. */
function most(nodes: number): Result {
  let best = simulate(nodes, 1);
  // A node works on one core.
  let upper = Math.min(100_000, Math.floor((nodes * 1_000) / nodeMs));
  for (let round = 0; round < 12; round += 1) {
    const result = simulate(nodes, Math.round((best.load + upper) / 2));
    if (result.waitMs > 50 || result.lateBeats > 0) upper = result.load;
    else best = result;
  }
  return best;
}

console.log(`One Postgres of ${cores} cores; an input costs it ${dispatchMs} ms, a node ${nodeMs} ms\n`);
console.log("nodes  idle load of Postgres  inputs/s at most  of them per node  ended by  connections");
for (const nodes of [1, 3, 10, 30, 100, 256]) {
  const idle = simulate(nodes, 1);
  const best = most(nodes);
  console.log(
    [
      `${nodes}`.padStart(5),
      `${(idle.busy * 100).toFixed(1)} %`.padStart(22),
      `${best.load}`.padStart(17),
      `${Math.floor(best.load / nodes)}`.padStart(17),
      (best.load * nodeMs > nodes * 990 ? "nodes" : "Postgres").padStart(9),
      `${nodes * connectionsPerNode}`.padStart(12),
    ].join(" "),
  );
}
