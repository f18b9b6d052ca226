import { randomUUID } from "node:crypto";
import type { OwnConnection } from "../../postgres/pool.ts";
import { openConnection } from "../../postgres/pool.ts";
import type { DatabaseClock, EngineDatabase } from "./engine-database.ts";

/**
 * Messages between nodes. They only save time: the receiver would find the same in the rows a moment later. A node receives its own
 * news too, so the handler of a news must not send it again.
 * `session`: an input was queued; `run`: a run was queued; `ended`: a dispatch or a run has ended; `cancel`: a running
 * dispatch or run was cancelled; `ended_elsewhere`: a run has ended on a node that does not own it;
 * `signal`: a run has a signal; `stream`: events were written; `approval`: a tool call was decided; `schedule`: schedules
 * were changed; `shards`: shards are free; `echo`: a node tests whether notifications arrive.
 */
export type News =
  | readonly ["session", agent: string, instance_id: string, session: string]
  | readonly [
      "run" | "ended" | "ended_elsewhere" | "cancel" | "signal" | "stream" | "approval" | "echo",
      id: string,
    ]
  | readonly ["schedule" | "shards"];

export interface NewsOptions {
  readonly database: EngineDatabase;
  readonly clock: DatabaseClock;
  /** For tests: news are neither sent nor received. */
  readonly isMute?: boolean | undefined;
  /** Whether the node receives news; without them it polls the rows. Default true. */
  readonly listens?: boolean | undefined;
  /** The number of other nodes. News of this node go out only if there are any, or if another process listens too. */
  readonly others: () => number;
  receiveNews(news: News): void;
}

/** How often a node tests whether notifications arrive. */
const echoMs = 2_000;
/** The least time between two sends; the first news after a pause are sent at once. */
const gatherMs = 5;
/** The same for ends and written events, which are less urgent. */
const gatherLateMs = 25;
/** News from another process mean for so long that it listens. */
const listenerMs = 3 * echoMs;
/** Postgres limits a payload to 8,000 bytes. */
const largestPayload = 7_800;
const retryMs = 500;

/** Carries news between the nodes: `LISTEN` on a direct connection, `NOTIFY` in batches. */
export class NewsWire {
  readonly #options: NewsOptions;
  readonly #id = randomUUID();
  readonly #stopped = new AbortController();
  readonly #pending = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  /** When the pending news are sent, by `performance.now`. */
  #due = 0;
  /** When news were last sent, by `performance.now`. */
  #flushedAt = Number.NEGATIVE_INFINITY;
  #connection: OwnConnection | undefined;
  #loop: Promise<void> | undefined;
  #echo: NodeJS.Timeout | undefined;
  /** Since when no news have arrived, by `performance.now`; `undefined` before the first echo. */
  #silentSince: number | undefined;
  /** When news last arrived over the present connection, by `performance.now`. */
  #heardAt = Number.NEGATIVE_INFINITY;
  /** When this process may assume that no other one listens, by `performance.now`. */
  #aloneAt = Number.POSITIVE_INFINITY;

  constructor(options: NewsOptions) {
    this.#options = options;
  }

  start(): void {
    const { isMute = false, listens = true } = this.#options;
    if (isMute || !listens) return;
    this.#loop ??= this.#listen();
    // Also tells the nodes of a process that only accepts work.
    this.#echo ??= setInterval(() => this.#sendEcho(), echoMs).unref();
  }

  /** Whether news arrive: the last, at least this process's own echo, came a moment ago. */
  get arrives(): boolean {
    return performance.now() - this.#heardAt < 2 * echoMs;
  }

  #sendEcho(): void {
    this.#silentSince ??= performance.now();
    this.publish(["echo", this.#id]);
  }

  /** Whether another process can receive news. */
  get #hasReceivers(): boolean {
    return this.#options.others() > 0 || !this.arrives || performance.now() < this.#aloneAt;
  }

  /** Milliseconds since this node received news; `undefined` before the first echo. */
  get ageMs(): number | undefined {
    return this.#silentSince === undefined ? undefined : Math.round(performance.now() - this.#silentSince);
  }

  /** Sends news to the other nodes soon. The caller itself notifies this node's parts. */
  publish(news: News): void {
    if (this.#options.isMute === true || this.#stopped.signal.aborted) return;
    if (news[0] !== "echo" && !this.#hasReceivers) return;
    const text = JSON.stringify(news);
    if (Buffer.byteLength(text) > largestPayload - 2) return;
    this.#pending.add(text);
    const now = performance.now();
    const due = Math.max(now, this.#flushedAt + (isLate(news) ? gatherLateMs : gatherMs));
    if (this.#timer !== undefined && due >= this.#due) return;
    clearTimeout(this.#timer);
    this.#due = due;
    this.#timer = setTimeout(() => void this.flush(), due - now);
  }

  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#flushedAt = performance.now();
    const { database } = this.#options;
    const pending = [...this.#pending];
    this.#pending.clear();
    for (const payload of toPayloads(pending)) {
      // The receivers find lost news in the rows, so a notification need not wait for the disk.
      await database
        .run("SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)", [
          this.#channel,
          payload,
        ])
        .catch(() => undefined);
    }
  }

  async stop(): Promise<void> {
    clearInterval(this.#echo);
    await this.flush();
    this.#stopped.abort();
    this.#connection?.destroy();
    await this.#loop;
  }

  /** Postgres limits a name to 63 bytes. */
  get #channel(): string {
    return `kit ${this.#options.database.schema}`.slice(0, 40);
  }

  async #listen(): Promise<void> {
    const { database, clock, receiveNews: onNews } = this.#options;
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      try {
        const connection = await openConnection(database.directUrl);
        this.#connection = connection;
        if (signal.aborted) connection.destroy();
        connection.onNotification((payload) => {
          this.#heardAt = performance.now();
          if (this.#silentSince !== undefined) this.#silentSince = this.#heardAt;
          for (const news of JSON.parse(payload) as News[]) {
            if (news[0] === "echo" && news[1] !== this.#id) this.#aloneAt = this.#heardAt + listenerMs;
            onNews(news);
          }
        });
        await connection.query(`LISTEN "${this.#channel.replaceAll('"', '""')}"`);
        this.#aloneAt = performance.now() + listenerMs;
        this.#sendEcho();
        await connection.ended;
      } catch {
        // The database is unavailable: the receivers find lost news in the rows.
      }
      this.#heardAt = Number.NEGATIVE_INFINITY;
      await clock.sleep(retryMs, signal).catch(() => undefined);
    }
  }
}

function isLate([kind]: News): boolean {
  return kind === "ended" || kind === "stream";
}

function toPayloads(news: readonly string[]): readonly string[] {
  const payloads: string[] = [];
  let group: string[] = [];
  let bytes = 2;
  for (const text of news) {
    const size = Buffer.byteLength(text) + 1;
    if (bytes + size > largestPayload) {
      payloads.push(`[${group.join(",")}]`);
      group = [];
      bytes = 2;
    }
    group.push(text);
    bytes += size;
  }
  if (group.length > 0) payloads.push(`[${group.join(",")}]`);
  return payloads;
}
