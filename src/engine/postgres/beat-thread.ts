import { parentPort } from "node:worker_threads";
import { type OwnConnection, openConnection } from "../../postgres/pool.ts";

/** A node whose heartbeats the thread sends until `ends`. */
export interface BeatOrder {
  readonly node: string;
  readonly url: string;
  /** The SQL of a heartbeat; its only value is the node. */
  readonly sql: string;
  readonly everyMs: number;
  /** A counter that the main thread raises. Without a change for `patienceMs` it hangs, and its node counts as dead. */
  readonly alive: Int32Array;
  /** When the last heartbeat that reached the row was sent, by `process.hrtime`. */
  readonly sent: BigInt64Array;
  readonly patienceMs: number;
  /** When the main thread's last heartbeat reached the row, by `process.hrtime`: while this is recent, the thread sends none. */
  readonly beaten: BigInt64Array;
  readonly lateMs: number;
}

export type BeatMessage = BeatOrder | { readonly ends: string };

const ends = new Map<string, () => void>();

function begin({ node, url, sql, alive, sent, beaten, ...times }: BeatOrder): void {
  let connection: OwnConnection | undefined;
  let isBusy = false;
  let seen = { count: Atomics.load(alive, 0), at: performance.now() };

  /** A connection that ends is opened again with the next heartbeat, whether the main thread is late or not. */
  async function open(): Promise<OwnConnection> {
    const opened = await openConnection(url);
    void opened.ended.then(() => {
      if (connection === opened) connection = undefined;
    });
    return opened;
  }

  async function beat(): Promise<void> {
    const count = Atomics.load(alive, 0);
    if (count !== seen.count) seen = { count, at: performance.now() };
    if (isBusy || performance.now() - seen.at > times.patienceMs) return;
    const age = Number(process.hrtime.bigint() - Atomics.load(beaten, 0)) / 1e6;
    // The first heartbeat also opens the connection, which is there when the main thread is late.
    if (connection !== undefined && age < times.lateMs) return;
    isBusy = true;
    try {
      connection ??= await open();
      const at = process.hrtime.bigint();
      const { rows } = await connection.query(sql, [node]);
      if (rows.length > 0) Atomics.store(sent, 0, at);
    } catch {
      // The next heartbeat connects again.
      connection?.destroy();
      connection = undefined;
    }
    isBusy = false;
    if (!ends.has(node)) connection?.destroy();
  }

  ends.get(node)?.();
  const timer = setInterval(() => void beat(), times.everyMs);
  ends.set(node, () => {
    clearInterval(timer);
    ends.delete(node);
    if (!isBusy) connection?.destroy();
  });
}

parentPort?.on("message", (message: BeatMessage) => {
  if ("ends" in message) ends.get(message.ends)?.();
  else begin(message);
});
