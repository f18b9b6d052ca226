import { Worker } from "node:worker_threads";
import { ownModule } from "../../base/own-package.ts";
import type { BeatMessage } from "./beat-thread.ts";
import type { EngineDatabase } from "./engine-database.ts";
import { beatMs, beatSql } from "./node-rows.ts";

/** The heartbeats of a node from a thread of its own, sent while a busy event loop delays those of the main thread. */
export interface ThreadedBeats {
  /** Tells the thread that the main thread does not hang. */
  touch(): void;
  /** Tells the thread that a heartbeat of the main thread has reached the node's row. */
  noteBeat(): void;
  /** The time since the last heartbeat of the thread that reached the node's row, in ms. */
  age(): number;
  stop(): void;
}

/** One thread sends the heartbeats of all nodes of the process. */
let shared: Worker | undefined;

/** A node whose event loop hangs for this time counts as dead. */
export const hangMs = 10_000;

/** The main thread is late if its last heartbeat is older: then the thread sends them. */
const lateMs = beatMs * 1.5;

export function startThreadedBeats(database: EngineDatabase, node: string): ThreadedBeats {
  const alive = new Int32Array(new SharedArrayBuffer(4));
  const sent = new BigInt64Array(new SharedArrayBuffer(8));
  const beaten = new BigInt64Array(new SharedArrayBuffer(8));
  const post = (message: BeatMessage): void => thread().postMessage(message);
  const sql = database.inSchema(beatSql);
  const times = { everyMs: beatMs, patienceMs: hangMs, lateMs };
  post({ node, url: database.directUrl, sql, alive, sent, beaten, ...times });
  return {
    touch: () => void Atomics.add(alive, 0, 1),
    noteBeat: () => void Atomics.store(beaten, 0, process.hrtime.bigint()),
    age: () => {
      const at = Atomics.load(sent, 0);
      return at === 0n ? Number.POSITIVE_INFINITY : Number(process.hrtime.bigint() - at) / 1e6;
    },
    stop: () => post({ ends: node }),
  };
}

function thread(): Worker {
  if (shared !== undefined) return shared;
  const worker = new Worker(ownModule("engine/postgres/beat-thread"), { execArgv: [] });
  worker.unref();
  const forget = (): void => {
    if (shared === worker) shared = undefined;
  };
  // Without the thread, the heartbeats of the main thread are the only ones.
  worker.on("error", forget);
  worker.on("exit", forget);
  shared = worker;
  return worker;
}
