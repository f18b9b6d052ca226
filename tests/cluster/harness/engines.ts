import { Balancer } from "../../../src/engine/restate/testing/balancer.ts";
import { freePort } from "../../../src/testing/free-port.ts";
import { type RestateServers, startRestate } from "../../../src/testing/restate-server.ts";
import type { Database } from "./database.ts";
import { addressOf } from "./database.ts";
import type { HistoryEntry } from "./history.ts";
import type { Kit, Kits } from "./kits.ts";
import { NetworkProxy } from "./network-proxy.ts";

/** Describes an engine that several machines share, for the harness. */
export interface ClusterEngine {
  readonly kind: string;
  /** Lines of kit.toml below `[engine]`. */
  readonly toml: string;
  /** The environment of a node's process, which reaches the database through its own proxy. */
  environment(kit: Kit): Readonly<Record<string, string>>;
  /** SQL of triggers that record which node claims and settles; run once the tables exist. */
  readonly recorder: string;
  /** The recorded entries. */
  history(database: Database): Promise<readonly HistoryEntry[]>;
  /** How many of the inputs have not ended. */
  open(database: Database, ids: readonly string[]): Promise<number>;
  /** The times of the schedule occurrences that have started runs of a workflow. */
  occurrences(database: Database, workflow: string): Promise<readonly string[]>;
  /** Whether this number of nodes share the work. */
  isBalanced(database: Database, nodes: number): Promise<boolean>;
  /** Servers in addition to the database, started before the first node. */
  start?(kits: Kits): Promise<void>;
  stop?(): Promise<void>;
}

const schema = "kit";

export const postgresEngine: ClusterEngine = {
  kind: "postgres",
  toml: 'kind = "postgres"',
  environment: ({ proxy }) => ({ KIT_ENGINE_URL: addressOf(proxy.port) }),
  recorder: `
    CREATE TABLE ${schema}.recorded (
      number bigint GENERATED ALWAYS AS IDENTITY, at double precision NOT NULL DEFAULT extract(epoch FROM clock_timestamp()) * 1000,
      what text NOT NULL, id text, line text, shard int, fence bigint, status text);
    CREATE FUNCTION ${schema}.record_dispatch() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        INSERT INTO ${schema}.recorded (what, id, line, shard, fence, status)
        VALUES (CASE new.status WHEN 'running' THEN 'claimed' WHEN 'queued' THEN 'queued' ELSE 'settled' END,
          new.dispatch_id, new.instance_id, new.shard, new.fence, new.status);
        RETURN new;
      END $$;
    CREATE TRIGGER record_dispatches AFTER UPDATE OF status ON ${schema}.dispatches FOR EACH ROW
      WHEN (new.status <> old.status OR new.fence <> old.fence) EXECUTE FUNCTION ${schema}.record_dispatch();
    CREATE FUNCTION ${schema}.record_owner() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        INSERT INTO ${schema}.recorded (what, shard, fence) VALUES ('owned', new.shard, new.fence);
        RETURN new;
      END $$;
    CREATE TRIGGER record_owners AFTER UPDATE OF fence ON ${schema}.shards FOR EACH ROW EXECUTE FUNCTION ${schema}.record_owner();`,
  async history(database) {
    const { rows } = await database.query(
      `SELECT at, what, id, line, shard, fence::float8 AS fence, status FROM ${schema}.recorded WHERE what <> 'queued' ORDER BY number`,
    );
    return rows as HistoryEntry[];
  },
  async open(database, ids) {
    const { rows } = await database.query(
      `SELECT count(*)::int AS open FROM ${schema}.dispatches WHERE dispatch_id = ANY($1) AND ended_at IS NULL`,
      [ids],
    );
    return rows[0]?.open;
  },
  async occurrences(database, workflow) {
    const { rows } = await database.query(
      `SELECT idempotency_key FROM ${schema}.runs WHERE workflow = $1 AND idempotency_key LIKE 'schedule:%'`,
      [workflow],
    );
    return rows.map(({ idempotency_key }) => /[^:]+:[^:]+:[^:]+$/.exec(idempotency_key)?.[0] ?? "");
  },
  async isBalanced(database, nodes) {
    const { rows } = await database.query(
      `SELECT count(DISTINCT pid)::int AS nodes, count(*)::int AS shards FROM pg_locks WHERE locktype = 'advisory' AND granted
       AND classid = hashtext($1)::oid`,
      [`kit shards of "${schema}"`],
    );
    return rows[0]?.nodes === nodes && rows[0]?.shards === 256;
  },
};

/** The proxies between one node and Restate, in both directions. */
interface RestateProxies {
  readonly listen: number;
  readonly ingress: NetworkProxy;
  readonly admin: NetworkProxy;
  /** The proxy from the balancer to the node. */
  readonly calls: NetworkProxy;
}

/** The engine on Postgres, with Restate, which calls the nodes through a balancer: each node has its own proxies from and to Restate. */
export class RestateEngine implements ClusterEngine {
  readonly kind = "restate";
  readonly toml = 'kind = "restate"';
  readonly recorder = postgresEngine.recorder;
  readonly history = postgresEngine.history;
  readonly open = postgresEngine.open;
  readonly occurrences = postgresEngine.occurrences;
  readonly #servers: number;
  readonly #proxies = new Map<Kit, RestateProxies>();
  #restate: RestateServers | undefined;
  #balancer: Balancer | undefined;

  /** `servers`: one server, or three that replicate their data. */
  constructor(servers = 1) {
    this.#servers = servers;
  }

  get restate(): RestateServers {
    if (this.#restate === undefined) throw new Error("Restate was not started.");
    return this.#restate;
  }

  async start({ kits }: Kits): Promise<void> {
    this.#restate = await startRestate({ count: this.#servers });
    this.#balancer = await Balancer.start();
    const [ingress = "", admin = ""] = [this.#restate.ingress[0], this.#restate.admin[0]];
    for (const kit of kits) {
      const listen = await freePort();
      const calls = await NetworkProxy.to(listen);
      this.#balancer.add(calls.port);
      const [toIngress, toAdmin] = [
        await NetworkProxy.to(portOf(ingress)),
        await NetworkProxy.to(portOf(admin)),
      ];
      this.#proxies.set(kit, { listen, calls, ingress: toIngress, admin: toAdmin });
    }
  }

  async stop(): Promise<void> {
    for (const { ingress, admin, calls } of this.#proxies.values())
      for (const proxy of [ingress, admin, calls]) proxy.close();
    await this.#balancer?.close();
    await this.#restate?.stop();
  }

  environment(kit: Kit): Readonly<Record<string, string>> {
    const { listen, ingress, admin } = this.#proxiesOf(kit);
    const others = (addresses: readonly string[]) => addresses.slice(1);
    const { restate } = this;
    return {
      ...postgresEngine.environment(kit),
      KIT_RESTATE_INGRESS: [`http://127.0.0.1:${ingress.port}`, ...others(restate.ingress)].join(),
      KIT_RESTATE_ADMIN: [`http://127.0.0.1:${admin.port}`, ...others(restate.admin)].join(),
      KIT_RESTATE_LISTEN: `127.0.0.1:${listen}`,
      KIT_RESTATE_ADDRESS: `${this.#balancer?.address}`,
    };
  }

  /** Nodes take shards when they are called, so they are balanced once all of them are registered. */
  async isBalanced(database: Database, nodes: number): Promise<boolean> {
    const { rows } = await database.query(
      `SELECT count(*)::int AS nodes FROM ${schema}.nodes WHERE NOT draining AND beat > clock_timestamp() - interval '1 second'`,
    );
    return rows[0]?.nodes === nodes;
  }

  /** Cuts a node off from Restate, in both directions; it still reaches the database. */
  cut(kit: Kit): void {
    const { ingress, admin, calls } = this.#proxiesOf(kit);
    for (const proxy of [ingress, admin, calls]) proxy.silence();
  }

  restore(kit: Kit): void {
    const { ingress, admin, calls } = this.#proxiesOf(kit);
    for (const proxy of [ingress, admin, calls]) proxy.restore();
  }

  #proxiesOf(kit: Kit): RestateProxies {
    const proxies = this.#proxies.get(kit);
    if (proxies === undefined) throw new Error("Restate was started without this node.");
    return proxies;
  }
}

function portOf(address: string): number {
  return Number(new URL(address).port);
}

/** The engine under test: `npm run test:cluster -- --engine restate` selects the second one. */
export function chosenEngine(): ClusterEngine {
  return process.env.KIT_CLUSTER_ENGINE === "restate" ? new RestateEngine() : postgresEngine;
}
