import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { processorMs, withChildren } from "../../../bench/cluster/processor-time.ts";
import { createTemporaryRepository } from "../../../src/testing/temporary-repository.ts";
import { createRandom } from "../../faults/seeded-random.ts";
import { createKitProcess, type KitProcess } from "../../faults/service/kit-process.ts";
import { type ModelServer, startModelServer } from "../../faults/service/model-server.ts";
import { Database } from "./database.ts";
import { project } from "./project.ts";

/** The cost of some work for Postgres. */
export interface Costs {
  readonly statements: number;
  /** Statements that Postgres has planned. */
  readonly planned: number;
  /** Flushes of the WAL to disk that a statement has waited for. */
  readonly flushes: number;
  /** Flushes by Postgres's own processes, which nothing waits for. */
  readonly otherFlushes: number;
  readonly walBytes: number;
  readonly processorMs: number;
  readonly seconds: number;
}

const settings = [
  "fsync=on",
  "shared_buffers=256MB",
  "shared_preload_libraries=pg_stat_statements",
  "pg_stat_statements.track_planning=on",
  "autovacuum=off",
];

/** An idle connection reports its counts after ten seconds. */
const reportMs = 11_000;

/**
 * Some `kit start` over a Postgres that counts: each has an agent whose model answers at once. The counts are read over another database,
 * whose own statements are left out.
 */
export class AgentCluster {
  readonly nodes: readonly KitProcess[];
  readonly database: Database;
  readonly #counts: pg.Client;
  /** A connection to the nodes' database, whose statements are left out by their comment. */
  readonly #beside: pg.Client;
  readonly #model: ModelServer;
  readonly #remove: () => Promise<void>;
  #sent = 0;

  private constructor(
    parts: Pick<AgentCluster, "nodes" | "database"> & {
      readonly counts: pg.Client;
      readonly beside: pg.Client;
      readonly model: ModelServer;
      readonly remove: () => Promise<void>;
    },
  ) {
    this.nodes = parts.nodes;
    this.database = parts.database;
    this.#counts = parts.counts;
    this.#beside = parts.beside;
    this.#model = parts.model;
    this.#remove = parts.remove;
  }

  static async start(count: number): Promise<AgentCluster> {
    const database = await Database.start(settings);
    await database.query("CREATE DATABASE counts");
    const counts = new pg.Client({ connectionString: database.url.replace(/postgres$/, "counts") });
    await counts.connect();
    await counts.query("CREATE EXTENSION pg_stat_statements");
    const beside = new pg.Client({ connectionString: database.url });
    await beside.connect();
    const model = await startModelServer(createRandom(1));
    const repository = await createTemporaryRepository();
    const nodes: KitProcess[] = [];
    for (let number = 0; number < count; number += 1) {
      const { "src/workflows/tick.ts": _, ...files } = project(model.baseUrl, 'kind = "postgres"');
      const folder = `machine${number}`;
      for (const [path, text] of Object.entries(files)) await repository.write(`${folder}/${path}`, text);
      const node = await createKitProcess(join(repository.root, folder));
      await node.start({
        KIT_ENGINE_URL: database.url,
        KIT_CLUSTER_EFFECTS: join(repository.root, "effects.log"),
      });
      nodes.push(node);
    }
    await delay(3_000);
    const remove = async (): Promise<void> => await repository[Symbol.asyncDispose]();
    return new AgentCluster({ nodes, database, counts, beside, model, remove });
  }

  /** Sends dispatches to new instances, `senders` at a time, and waits until all have ended. */
  async dispatch(count: number, senders: number): Promise<void> {
    let next = 0;
    await Promise.all(
      Array.from({ length: senders }, async () => {
        while (next++ < count) await this.#send();
      }),
    );
    while ((await this.#open()) > 0) await delay(50);
  }

  async #send(): Promise<void> {
    this.#sent += 1;
    const number = this.#sent;
    const { url = "" } = this.nodes[number % this.nodes.length] ?? {};
    const path = `${url}/agents/worker/i${number}/dispatch`;
    for (;;) {
      const reply = await fetch(path, {
        method: "POST",
        body: JSON.stringify({ input: "Hello." }),
        headers: { "content-type": "application/json" },
      });
      const text = await reply.text();
      if (reply.status === 202) return;
      // The disk of a busy machine can be silent for seconds.
      if (reply.status !== 503) throw new Error(`${reply.status} ${text}`);
      await delay(1_000);
    }
  }

  async #open(): Promise<number> {
    const { rows } = await this.#beside.query(
      "SELECT count(*)::int AS open FROM kit.dispatches WHERE ended_at IS NULL /* harness */",
    );
    return rows[0]?.open;
  }

  /** Measures what work costs. The flushes are complete once the connections have reported them. */
  async costsOf(work: () => Promise<void>): Promise<Costs> {
    const before = await this.#read();
    await work();
    const after = await this.#read();
    await delay(reportMs);
    const { flushes, otherFlushes } = await this.#read();
    const end = { ...after, flushes, otherFlushes };
    const names = Object.keys(end) as (keyof Costs)[];
    return Object.fromEntries(names.map((name) => [name, end[name] - before[name]])) as unknown as Costs;
  }

  async #read(): Promise<Costs> {
    const { rows } = await this.#counts.query(
      `SELECT coalesce(sum(calls), 0)::float8 AS "statements", coalesce(sum(plans), 0)::float8 AS "planned",
         (SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal' AND backend_type = 'client backend')::float8 AS "flushes",
         (SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal' AND backend_type <> 'client backend')::float8 AS "otherFlushes",
         pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS "walBytes"
       FROM pg_stat_statements JOIN pg_database ON oid = dbid WHERE datname = 'postgres' AND query NOT LIKE '%harness%'`,
    );
    const processor = processorMs(withChildren(this.database.pid));
    return { ...rows[0], processorMs: processor, seconds: performance.now() / 1_000 };
  }

  async stop(): Promise<void> {
    for (const node of this.nodes) await node.end("SIGKILL");
    await this.#counts.end();
    await this.#beside.end();
    await this.#model.close();
    await this.database.remove();
    await this.#remove();
  }
}
