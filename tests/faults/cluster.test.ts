import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Engine } from "../../src/engine/contract.ts";
import { createPostgresEngine } from "../../src/engine/postgres/create-postgres-engine.ts";
import type { NodeSettings, WorkNote } from "../../src/engine/postgres/testing/node-process.ts";
import { type PostgresServer, startPostgres } from "../../src/testing/postgres-server.ts";

const script = new URL("../../src/engine/postgres/testing/node-process.ts", import.meta.url);
const root = mkdtempSync(join(tmpdir(), "kit-cluster-"));
let server: PostgresServer;
let admin: pg.Pool;
let count = 0;

beforeAll(async () => {
  server = await startPostgres();
  admin = new pg.Pool({ connectionString: server.url });
  admin.on("error", () => undefined);
});

afterAll(async () => {
  await admin?.end();
  await server?.stop();
  rmSync(root, { recursive: true, force: true });
});

interface Settled {
  readonly seq: number;
  readonly dispatch_id: string;
  readonly instance_id: string;
  readonly status: string;
  readonly fence: number;
  readonly attempts: number;
  readonly settlements: number;
  readonly settled_at: number;
}

/** Several nodes in processes of their own, and an engine in this one that accepts and does no work. */
class Cluster {
  readonly #settings: NodeSettings;
  readonly nodes: ChildProcess[] = [];
  readonly acceptor: Engine;

  private constructor(settings: NodeSettings, acceptor: Engine) {
    this.#settings = settings;
    this.acceptor = acceptor;
  }

  static async start(nodes: number, { isMute = false } = {}): Promise<Cluster> {
    count += 1;
    const schema = `cluster_${count}`;
    const settings = { url: server.url, schema, log: join(root, `${schema}.log`), isMute };
    const acceptor = await createPostgresEngine({ url: server.url, schema, isMute });
    // Counted where no engine can reach: each time that a dispatch comes to an end.
    await admin.query(`
      CREATE TABLE ${schema}.settlements (dispatch_id text NOT NULL, at double precision NOT NULL);
      CREATE FUNCTION ${schema}.count_settlement() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO ${schema}.settlements VALUES (new.dispatch_id, extract(epoch FROM clock_timestamp()) * 1000); RETURN new; END $$;
      CREATE TRIGGER count_settlements AFTER UPDATE OF status ON ${schema}.dispatches FOR EACH ROW
        WHEN (new.status NOT IN ('queued', 'running')) EXECUTE FUNCTION ${schema}.count_settlement();`);
    const cluster = new Cluster(settings, acceptor);
    onTestFinished(() => cluster.stop());
    await Promise.all(Array.from({ length: nodes }, () => cluster.add()));
    await cluster.untilBalanced();
    return cluster;
  }

  async add(): Promise<ChildProcess> {
    const node = fork(script, [JSON.stringify(this.#settings)], { execArgv: [] });
    this.nodes.push(node);
    await once(node, "message");
    return node;
  }

  /** Waits until each node has its share of the shards. */
  async untilBalanced(): Promise<void> {
    const alive = this.nodes.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
    await this.until(async () => {
      const { rows } = await admin.query(
        `SELECT count(DISTINCT pid) AS nodes, count(*) AS shards FROM pg_locks WHERE locktype = 'advisory' AND granted
         AND classid = hashtext($1)::oid`,
        [`kit shards of "${this.#settings.schema}"`],
      );
      return Number(rows[0].nodes) === alive.length && Number(rows[0].shards) === 256;
    });
  }

  /** Accepts inputs that take so many ms each, in turn for each instance. */
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
    if (!existsSync(this.#settings.log)) return [];
    const lines = readFileSync(this.#settings.log, "utf8").split("\n").slice(0, -1);
    return lines.map((line) => JSON.parse(line) as WorkNote);
  }

  async until(isSo: () => boolean | Promise<boolean>, withinMs = 30_000): Promise<void> {
    const deadline = Date.now() + withinMs;
    while (!(await isSo())) {
      if (Date.now() > deadline) throw new Error("It did not come to that.");
      await setTimeout(20);
    }
  }

  async settled(): Promise<readonly Settled[]> {
    const { schema } = this.#settings;
    const { rows } = await admin.query(
      `SELECT seq, dispatch_id, instance_id, status, fence, attempts, count(s.at)::int AS settlements, min(s.at) AS settled_at
       FROM ${schema}.dispatches AS d LEFT JOIN ${schema}.settlements AS s USING (dispatch_id)
       GROUP BY d.seq ORDER BY d.seq`,
    );
    return rows.map((row) => ({ ...row, seq: Number(row.seq), fence: Number(row.fence) }));
  }

  /** Checks the promises that hold however the nodes end: nothing lost, nothing settled twice, the order of each session kept. */
  async check(accepted: readonly string[]): Promise<void> {
    const rows = await this.settled();
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
      // The attempt that counts began after the input before it had been settled.
      if (last !== undefined) expect(Number(begun)).toBeGreaterThanOrEqual(Math.floor(last.settled_at) - 1);
    }
  }

  async allEnded(accepted: readonly string[]): Promise<void> {
    const signal = AbortSignal.timeout(45_000);
    await Promise.all(accepted.map((id) => this.acceptor.awaitDispatch(id, { signal })));
  }

  async stop(): Promise<void> {
    for (const node of this.nodes) {
      node.kill("SIGCONT");
      node.kill("SIGKILL");
    }
    await this.acceptor.drain({ timeoutMs: 0 });
  }
}

test("a node that is killed in mid-step loses nothing: the others do its work, each input once and in order", async () => {
  const cluster = await Cluster.start(3);
  const accepted = await cluster.load({ instances: 12, each: 4, ms: 100 });
  await cluster.until(() => cluster.notes().length > 12);
  const [victim] = cluster.nodes;
  victim?.kill("SIGKILL");
  await cluster.allEnded(accepted);
  await cluster.check(accepted);
});

test("a node that is frozen for five seconds is told that its leases are lost, and can settle nothing any more", async () => {
  const cluster = await Cluster.start(2);
  const accepted = await cluster.load({ instances: 8, each: 3, ms: 400 });
  await cluster.until(() => cluster.notes().length >= 8);
  const [frozen] = cluster.nodes;
  frozen?.kill("SIGSTOP");
  const before = new Set(
    cluster
      .notes()
      .filter(({ pid }) => pid === frozen?.pid)
      .map(({ id }) => id),
  );
  await setTimeout(5_000);
  frozen?.kill("SIGCONT");
  await cluster.allEnded(accepted);
  await cluster.until(() => cluster.notes().some(({ pid, what }) => pid === frozen?.pid && what === "lost"));
  await cluster.check(accepted);
  // Its attempts came to their ends, and none of them counted.
  const late = cluster
    .notes()
    .filter(({ pid, what, id }) => pid === frozen?.pid && what === "end" && before.has(id));
  const rows = new Map((await cluster.settled()).map((row) => [row.dispatch_id, row]));
  for (const { id, fence } of late.slice(-2)) expect(rows.get(id)?.fence).toBeGreaterThanOrEqual(fence);
});

test("when all connections are dropped, the nodes come back and go on", async () => {
  const cluster = await Cluster.start(2);
  const accepted = await cluster.load({ instances: 8, each: 4, ms: 100 });
  await cluster.until(() => cluster.notes().length >= 8);
  const ended = cluster.allEnded(accepted);
  // A caller that waits already outlasts the drop; one that comes just then is told `store_unavailable`.
  await setTimeout(300);
  await admin.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
  );
  await ended;
  await cluster.check(accepted);
});

test("nodes that cannot tell each other anything find all work in the rows", async () => {
  const cluster = await Cluster.start(2, { isMute: true });
  const accepted = await cluster.load({ instances: 8, each: 4, ms: 20 });
  cluster.nodes[0]?.kill("SIGKILL");
  await cluster.allEnded(accepted);
  await cluster.check(accepted);
});

test("a run whose node is killed goes on after its last finished step, and a signal from any node reaches it", async () => {
  const cluster = await Cluster.start(3);
  const runs = await Promise.all(
    Array.from({ length: 9 }, () => cluster.acceptor.startRun({ workflow: "steps", payload: {} })),
  );
  await cluster.until(() => cluster.notes().length >= 18);
  cluster.nodes[1]?.kill("SIGKILL");
  for (const { run_id } of runs) await cluster.acceptor.signal(run_id, { name: "go", payload: run_id });
  const ended = await Promise.all(runs.map(({ run_id }) => cluster.acceptor.awaitRun(run_id)));
  for (const record of ended) expect([record?.status, record?.result]).toEqual(["completed", record?.run_id]);
  for (const { run_id } of runs) {
    const steps = cluster.notes().filter(({ id, what }) => id === run_id && what === "step");
    // Only the step that was cut off may have begun twice.
    expect(steps.length).toBeLessThanOrEqual(6);
    expect(new Set(steps.map(({ step }) => step))).toEqual(new Set([1, 2, 3, 4, 5]));
  }
});

test("a node that stops hands its shards over at once, and one that joins gets its share", async () => {
  const cluster = await Cluster.start(2);
  const [leaving] = cluster.nodes;
  const accepted = await cluster.load({ instances: 12, each: 6, ms: 50 });
  await cluster.until(() => cluster.notes().length >= 12);
  leaving?.send("drain");
  await once(leaving as ChildProcess, "exit");
  await cluster.add();
  await cluster.allEnded(accepted);
  await cluster.check(accepted);
  await cluster.untilBalanced();
});
