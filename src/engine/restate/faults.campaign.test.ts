import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { freePort } from "../../testing/free-port.ts";
import { type PostgresServer, startPostgres } from "../../testing/postgres-server.ts";
import { hasRestate, type RestateServers, startRestate } from "../../testing/restate-server.ts";
import type { Engine } from "../contract.ts";
import { createRestateEngine } from "./create-restate-engine.ts";
import { Balancer } from "./testing/balancer.ts";
import type { NodeSettings, WorkNote } from "./testing/node-process.ts";

const script = new URL("testing/node-process.ts", import.meta.url);
const root = mkdtempSync(join(tmpdir(), "kit-restate-faults-"));
let postgres: PostgresServer;
let admin: pg.Pool;
let count = 0;

interface Settled {
  readonly dispatch_id: string;
  readonly instance_id: string;
  readonly status: string;
  readonly fence: number;
  readonly attempts: number;
  readonly settlements: number;
  readonly settled_at: number;
}

/** Two nodes in other processes, which Restate calls, and an engine in this process that only accepts work. */
class Cluster {
  readonly schema: string;
  readonly nodes: ChildProcess[] = [];
  readonly acceptor: Engine;
  readonly #balancer: Balancer;
  readonly #restate: RestateServers;

  private constructor(servers: {
    schema: string;
    acceptor: Engine;
    balancer: Balancer;
    restate: RestateServers;
  }) {
    this.schema = servers.schema;
    this.acceptor = servers.acceptor;
    this.#balancer = servers.balancer;
    this.#restate = servers.restate;
  }

  static async start(restate: RestateServers): Promise<Cluster> {
    count += 1;
    const schema = `faults_${count}`;
    const { ingress, admin: api } = restate;
    const acceptor = await createRestateEngine({
      url: postgres.url,
      schema,
      restate: { ingress, admin: api },
    });
    // A trigger outside the engines counts each end of a dispatch.
    await admin.query(`
      CREATE TABLE ${schema}.settlements (dispatch_id text NOT NULL, at double precision NOT NULL);
      CREATE FUNCTION ${schema}.count_settlement() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO ${schema}.settlements VALUES (new.dispatch_id, extract(epoch FROM clock_timestamp()) * 1000); RETURN new; END $$;
      CREATE TRIGGER count_settlements AFTER UPDATE OF status ON ${schema}.dispatches FOR EACH ROW
        WHEN (new.status NOT IN ('queued', 'running')) EXECUTE FUNCTION ${schema}.count_settlement();`);
    const cluster = new Cluster({ schema, acceptor, balancer: await Balancer.start(), restate });
    onTestFinished(() => cluster.stop());
    await Promise.all([cluster.add(), cluster.add()]);
    return cluster;
  }

  async add(): Promise<ChildProcess> {
    const port = await freePort();
    const { ingress, admin: api } = this.#restate;
    const settings: NodeSettings = {
      url: postgres.url,
      schema: this.schema,
      log: this.#log,
      restate: { ingress, admin: api, listen: `127.0.0.1:${port}`, address: this.#balancer.address },
    };
    this.#balancer.add(port);
    const node = fork(script, [JSON.stringify(settings)], { execArgv: [] });
    this.nodes.push(node);
    await once(node, "message");
    return node;
  }

  get #log(): string {
    return join(root, `${this.schema}.log`);
  }

  /** Accepts inputs that take `ms` each, for each instance in turn. */
  async load({ instances, each, ms }: { instances: number; each: number; ms: number }): Promise<string[]> {
    const receipts: string[] = [];
    for (let number = 0; number < each; number += 1) {
      for (let instance = 0; instance < instances; instance += 1) {
        const key = { agent: "worker", instance_id: `i${instance}`, session: "default" };
        receipts.push((await this.acceptor.admit({ ...key, input: ms })).dispatch_id);
      }
    }
    return receipts;
  }

  notes(): readonly WorkNote[] {
    if (!existsSync(this.#log)) return [];
    const lines = readFileSync(this.#log, "utf8").split("\n").slice(0, -1);
    return lines.map((line) => JSON.parse(line) as WorkNote);
  }

  /** Waits until a node is working, and returns it. */
  async atWork(): Promise<ChildProcess> {
    const signal = AbortSignal.timeout(30_000);
    for (;;) {
      signal.throwIfAborted();
      const notes = this.notes();
      const open = notes.findLast(
        ({ id, what, pid }) =>
          what === "begin" &&
          !notes.some((other) => other.what === "end" && other.id === id && other.pid === pid),
      );
      const node = this.nodes.find(({ pid }) => pid === open?.pid);
      if (node !== undefined) return node;
      await setTimeout(20);
    }
  }

  /** Checks that nothing was lost or settled twice, and that each session kept its order. */
  async check(accepted: readonly string[]): Promise<void> {
    const signal = AbortSignal.timeout(60_000);
    await Promise.all(accepted.map((id) => this.acceptor.awaitDispatch(id, { signal })));
    const { rows } = await admin.query<Settled>(
      `SELECT dispatch_id, instance_id, status, fence::float8 AS fence, attempts, count(s.at)::int AS settlements, min(s.at) AS settled_at
       FROM ${this.schema}.dispatches AS d LEFT JOIN ${this.schema}.settlements AS s USING (dispatch_id)
       GROUP BY dispatch_id, d.seq ORDER BY d.seq`,
    );
    expect(rows.map(({ dispatch_id }) => dispatch_id)).toEqual(accepted);
    const begins = new Map<string, number>();
    for (const { what, id, attempt, fence, at } of this.notes())
      if (what === "begin") begins.set(`${id} ${attempt} ${fence}`, at);
    const before = new Map<string, Settled>();
    for (const row of rows) {
      expect([row.status, row.settlements]).toEqual(["completed", 1]);
      const begun = begins.get(`${row.dispatch_id} ${row.attempts} ${row.fence}`);
      const last = before.get(row.instance_id);
      before.set(row.instance_id, row);
      // The settled attempt began after the settlement of the previous input.
      if (last !== undefined) expect(Number(begun)).toBeGreaterThanOrEqual(Math.floor(last.settled_at) - 1);
    }
  }

  async stop(): Promise<void> {
    for (const node of this.nodes) {
      node.kill("SIGCONT");
      node.kill("SIGKILL");
    }
    await this.acceptor.drain({ timeoutMs: 0 });
    await this.#balancer.close();
  }
}

const load = { instances: 8, each: 3, ms: 200 };

describe.skipIf(!hasRestate)("with the server of npm run test:vendors", () => {
  beforeAll(async () => {
    postgres = await startPostgres();
    admin = new pg.Pool({ connectionString: postgres.url });
    admin.on("error", () => undefined);
  });

  afterAll(async () => {
    await admin?.end();
    await postgres?.stop();
    rmSync(root, { recursive: true, force: true });
  });

  async function restateOf(servers: number): Promise<RestateServers> {
    const restate = await startRestate({ count: servers });
    onTestFinished(() => restate.stop());
    return restate;
  }

  test("when a working node is killed, another node does its begun work and the rest, in order", async () => {
    const cluster = await Cluster.start(await restateOf(1));
    const accepted = await cluster.load(load);
    const node = await cluster.atWork();
    node.kill("SIGKILL");
    const killedAt = Date.now();
    await cluster.check(accepted);
    const again = cluster.notes().find(({ what, attempt }) => what === "begin" && attempt > 1);
    expect(Number(again?.at) - killedAt).toBeLessThan(5_000);
  });

  test("a node that was frozen for five seconds settles nothing, and its signals fire with lease_lost", async () => {
    const cluster = await Cluster.start(await restateOf(1));
    const accepted = await cluster.load(load);
    const node = await cluster.atWork();
    node.kill("SIGSTOP");
    await setTimeout(5_000);
    node.kill("SIGCONT");
    await cluster.check(accepted);
    expect(cluster.notes().some(({ what, pid }) => what === "lost" && pid === node.pid)).toBe(true);
  });

  test("when Restate is killed, inputs are still accepted, and all are done once it is back", async () => {
    const restate = await restateOf(1);
    const cluster = await Cluster.start(restate);
    const accepted = await cluster.load(load);
    await cluster.atWork();
    await restate.kill();
    const begun = performance.now();
    const more = await cluster.load({ instances: 4, each: 1, ms: 10 });
    expect((performance.now() - begun) / more.length).toBeLessThan(500);
    const other = await cluster.acceptor.admit({
      agent: "other",
      instance_id: "new",
      session: "s",
      input: 1,
    });
    await setTimeout(1_000);
    await restate.start();
    await cluster.check([...accepted, ...more, other.dispatch_id]);
  });

  test("when one of three Restate servers is killed, all work is done with the other two", async () => {
    const restate = await restateOf(3);
    const cluster = await Cluster.start(restate);
    const accepted = await cluster.load(load);
    await cluster.atWork();
    await restate.kill(0);
    const more = await cluster.load({ instances: 12, each: 1, ms: 10 });
    await cluster.check([...accepted, ...more]);
  });

  test("when Restate has lost its data, the nodes find accepted work in the rows", async () => {
    const first = await startRestate();
    const cluster = await Cluster.start(first);
    await first.stop();
    const accepted = await cluster.load({ instances: 4, each: 2, ms: 10 });
    for (const node of cluster.nodes.splice(0)) node.kill("SIGKILL");
    await cluster.acceptor.drain({ timeoutMs: 0 });
    const fresh = await restateOf(1);
    const port = await freePort();
    const engine = await createRestateEngine({
      url: postgres.url,
      schema: cluster.schema,
      restate: { ingress: fresh.ingress, admin: fresh.admin, listen: `127.0.0.1:${port}` },
    });
    onTestFinished(() => engine.drain({ timeoutMs: 0 }));
    await engine.start({ dispatch: async () => "done", run: async () => null });
    const ended = await Promise.all(accepted.map((id) => engine.awaitDispatch(id)));
    expect(ended.map((record) => record?.result)).toEqual(accepted.map(() => "done"));
  });

  test("after a kill runs continue after their last finished step, wake up in time, and get their signal", async () => {
    const cluster = await Cluster.start(await restateOf(1));
    const runs = await Promise.all(
      Array.from({ length: 6 }, () => cluster.acceptor.startRun({ workflow: "steps", payload: {} })),
    );
    await expect.poll(() => cluster.notes().filter(({ what }) => what === "step").length).toBeGreaterThan(6);
    cluster.nodes[0]?.kill("SIGKILL");
    for (const { run_id } of runs) await cluster.acceptor.signal(run_id, { name: "go", payload: "went" });
    const signal = AbortSignal.timeout(60_000);
    const ended = await Promise.all(runs.map(({ run_id }) => cluster.acceptor.awaitRun(run_id, { signal })));
    expect(ended.map((record) => record?.result)).toEqual(runs.map(() => "went"));
  });
});
