import type { OwnConnection } from "../../postgres/pool.ts";
import { openConnection } from "../../postgres/pool.ts";
import type { DatabaseClock, EngineDatabase } from "./engine-database.ts";

/**
 * Messages between nodes. They only save time: the receiver would find the same in the rows a moment later.
 * `session`: an input was queued; `run`: a run was queued; `ended`: a dispatch or a run has ended; `cancel`: a running
 * dispatch or run was cancelled; `signal`: a run has a signal; `stream`: events were written; `approval`: a tool call was
 * decided; `schedule`: schedules were changed; `shards`: shards are free; `echo`: a node tests whether notifications
 * arrive.
 */
export type News =
  | readonly ["session", agent: string, instance_id: string, session: string]
  | readonly ["run" | "ended" | "cancel" | "signal" | "stream" | "approval" | "echo", id: string]
  | readonly ["schedule" | "shards"];

export interface NewsOptions {
  readonly database: EngineDatabase;
  readonly clock: DatabaseClock;
  /** For tests: news are neither sent nor received. */
  readonly isMute?: boolean | undefined;
  /** Whether the node receives news; without them it polls the rows. Default true. */
  readonly listens?: boolean | undefined;
  receiveNews(news: News): void;
}

/** How often a node tests whether notifications arrive. */
const echoMs = 2_000;
/** The least time between two sends; the first news after a pause are sent at once. */
const gatherMs = 5;
/** The same for `ended`, which is less urgent. */
const gatherEndsMs = 20;
/** Postgres limits a payload to 8,000 bytes. */
const largestPayload = 7_800;
const retryMs = 500;

/** Carries news between the nodes: `LISTEN` on a direct connection, `NOTIFY` in batches. */
export class NewsWire {
  readonly #options: NewsOptions;
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

  constructor(options: NewsOptions) {
    this.#options = options;
  }

  start(): void {
    const { isMute = false, listens = true } = this.#options;
    if (!isMute && listens) this.#loop ??= this.#listen();
  }

  /** Begins to test whether notifications arrive; `node` is this node's id. */
  startEcho(node: string): void {
    this.#echo ??= setInterval(() => {
      this.#silentSince ??= performance.now();
      this.publish(["echo", node]);
    }, echoMs).unref();
  }

  /** Milliseconds since this node received news; `undefined` before the first echo. */
  get ageMs(): number | undefined {
    return this.#silentSince === undefined ? undefined : Math.round(performance.now() - this.#silentSince);
  }

  /** Sends news to the other nodes soon. The caller itself notifies this node's parts. */
  publish(news: News): void {
    if (this.#options.isMute === true || this.#stopped.signal.aborted) return;
    const text = JSON.stringify(news);
    if (Buffer.byteLength(text) > largestPayload - 2) return;
    this.#pending.add(text);
    const now = performance.now();
    const due = Math.max(now, this.#flushedAt + (news[0] === "ended" ? gatherEndsMs : gatherMs));
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
          if (this.#silentSince !== undefined) this.#silentSince = performance.now();
          for (const news of JSON.parse(payload) as News[]) onNews(news);
        });
        await connection.query(`LISTEN "${this.#channel.replaceAll('"', '""')}"`);
        await connection.ended;
      } catch {
        // The database is unavailable: the receivers find lost news in the rows.
      }
      await clock.sleep(retryMs, signal).catch(() => undefined);
    }
  }
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
