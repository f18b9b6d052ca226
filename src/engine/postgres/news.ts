import type { OwnConnection } from "../../postgres/pool.ts";
import { openConnection } from "../../postgres/pool.ts";
import type { DatabaseClock, EngineDatabase } from "./engine-database.ts";

/**
 * Messages between nodes. Each message only hastens what the receiver would find in the rows a moment later:
 * `session`: an input was queued; `run`: a run was queued; `ended`: a dispatch or a run has ended; `cancel`: one that runs was cancelled;
 * `signal`: a run has a signal; `stream`: events were written; `approval`: a tool call was decided; `schedule`: schedules were changed;
 * `shards`: some are free; `echo`: a node asks itself whether notifications arrive.
 */
export type News =
  | readonly ["session", agent: string, instance_id: string, session: string]
  | readonly ["run" | "ended" | "cancel" | "signal" | "stream" | "approval" | "echo", id: string]
  | readonly ["schedule" | "shards"];

export interface NewsOptions {
  readonly database: EngineDatabase;
  readonly clock: DatabaseClock;
  /** For tests: nothing is said and nothing heard. */
  readonly isMute?: boolean | undefined;
  /** False: the node says what it has done, and finds in the rows what others have. Default true. */
  readonly listens?: boolean | undefined;
  receiveNews(news: News): void;
}

/** How often a node asks itself whether notifications arrive. */
const echoMs = 2_000;
/** News of so many ms are said together; the first after a pause is said at once. */
const gatherMs = 5;
/** The same, of ends, for which few wait. */
const gatherEndsMs = 20;
/** A payload of Postgres has 8,000 bytes at most. */
const largestPayload = 7_800;
const retryMs = 500;

/** Carries news between the nodes: `LISTEN` on a direct connection, `NOTIFY` in batches. */
export class NewsWire {
  readonly #options: NewsOptions;
  readonly #stopped = new AbortController();
  readonly #pending = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  /** When the news that wait are said, and when others were, by `performance.now`. */
  #due = 0;
  #flushedAt = Number.NEGATIVE_INFINITY;
  #connection: OwnConnection | undefined;
  #loop: Promise<void> | undefined;
  #echo: NodeJS.Timeout | undefined;
  /** Since when nothing was heard, by `performance.now`; undefined before the first question. */
  #silentSince: number | undefined;

  constructor(options: NewsOptions) {
    this.#options = options;
  }

  start(): void {
    const { isMute = false, listens = true } = this.#options;
    if (!isMute && listens) this.#loop ??= this.#listen();
  }

  /** Asks again and again whether notifications arrive; `node` is who asks. */
  ask(node: string): void {
    this.#echo ??= setInterval(() => {
      this.#silentSince ??= performance.now();
      this.publish(["echo", node]);
    }, echoMs).unref();
  }

  /** For how long this node has heard none, in ms; undefined where none was sent yet. */
  get ageMs(): number | undefined {
    return this.#silentSince === undefined ? undefined : Math.round(performance.now() - this.#silentSince);
  }

  /** Tells the other nodes, soon. This node is told by its caller. */
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
      // News that a crash of the database takes with it is found in the rows, so it does not wait for the disk.
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

  /** A name of Postgres has 63 bytes at most. */
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
        // The database is away: what was said meanwhile is found in the rows.
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
