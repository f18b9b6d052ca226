import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import http2 from "node:http2";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { createPostgresEngine } from "../../src/engine/postgres/create-postgres-engine.ts";
import { freePort } from "../../src/testing/free-port.ts";
import type { Database } from "../../tests/cluster/harness/database.ts";
import { installPeer, loadPeer } from "../runtime/peers/install-peer.ts";
import { withChildren } from "./processor-time.ts";
import {
  type BenchInput,
  limits,
  type Subject,
  type Worker,
  type WorkerReport,
  type WorkerSettings,
} from "./subject.ts";

const peers = {
  restate: { "@restatedev/restate-sdk": "1.17.2", "@restatedev/restate-server": "1.7.12" },
  dbos: { "@dbos-inc/dbos-sdk": "5.3.0" },
} as const;

export type SubjectName = "embedded" | "postgres" | keyof typeof peers;

let schemas = 0;

/** Queries over one permanent connection: opening a connection costs Postgres more than the query. */
async function openCount(database: Database, statement: string) {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  return {
    count: async (): Promise<number> => Number((await client.query(statement)).rows[0]?.done),
    close: () => client.end(),
  };
}

/** Starts an engine with a number of workers; returns the reason if its packages cannot be installed. */
export async function startSubject(
  name: SubjectName,
  { database, workers }: { readonly database: Database; readonly workers: number },
): Promise<Subject | string> {
  if (name === "restate" || name === "dbos") {
    const reason = await installPeer(`cluster-${name}`, peers[name]);
    if (reason !== undefined) return reason;
  }
  schemas += 1;
  const settings = { kind: name, url: database.url, schema: `bench_${name}_${schemas}` };
  return await starters[name]({ database, workers, settings });
}

interface Start {
  readonly database: Database;
  readonly workers: number;
  readonly settings: WorkerSettings;
}

const starters: Readonly<Record<SubjectName, (start: Start) => Promise<Subject>>> = {
  async embedded({ settings }) {
    const folder = mkdtempSync(join(tmpdir(), "kit-bench-embedded-"));
    const worker = await startWorker({ ...settings, folder });
    return {
      // It accepts and works in one process, which gets the inputs in messages, so their cost counts for it.
      admit: async (input) => void worker.child.send({ admit: [input] }),
      done: async () => worker.report.done,
      processes: { worker: () => [worker.pid] },
      workers: [worker],
      async stop() {
        await end(worker.child);
        rmSync(folder, { recursive: true, force: true });
      },
    };
  },
  async postgres({ database, workers, settings }) {
    const acceptor = await createPostgresEngine({ url: settings.url, schema: settings.schema, limits });
    const started = await Promise.all(Array.from({ length: workers }, () => startWorker(settings)));
    await untilBalanced(database, settings.schema, workers);
    const done = await openCount(
      database,
      `SELECT count(*) AS done FROM ${settings.schema}.dispatches WHERE status = 'completed'`,
    );
    return {
      admit: (input) =>
        acceptor.admit({ agent: "worker", instance_id: input.session, session: "default", input }),
      done: done.count,
      processes: { ...processesOf(started), Postgres: () => withChildren(database.pid) },
      workers: started,
      async stop() {
        await Promise.all(started.map(({ child }) => end(child)));
        await acceptor.drain({ timeoutMs: 0 });
        await done.close();
      },
    };
  },
  async dbos({ database, workers, settings }) {
    const first = await startWorker(settings);
    const more = await Promise.all(Array.from({ length: workers - 1 }, () => startWorker(settings)));
    const started = [first, ...more];
    const { DBOSClient } = await loadPeer<DbosModule>("cluster-dbos", "@dbos-inc/dbos-sdk");
    const client = await DBOSClient.create({
      systemDatabaseUrl: settings.url,
      systemDatabaseSchemaName: settings.schema,
      systemDatabasePoolSize: 20,
      applicationName: "bench",
    });
    const done = await openCount(
      database,
      `SELECT count(*) AS done FROM ${settings.schema}.workflow_status WHERE status = 'SUCCESS'`,
    );
    return {
      admit: (input) =>
        client.enqueue(
          { queueName: "sessions", workflowName: "turn", queuePartitionKey: input.session, appVersion: "1" },
          input,
        ),
      done: done.count,
      processes: { ...processesOf(started), Postgres: () => withChildren(database.pid) },
      workers: started,
      async stop() {
        await Promise.all(started.map(({ child }) => end(child)));
        await client.destroy();
        await done.close();
      },
    };
  },
  async restate({ workers, settings }) {
    const folder = mkdtempSync(join(tmpdir(), "kit-bench-restate-"));
    const [node, admin, ingress] = await Promise.all([freePort(), freePort(), freePort()]);
    const binary = join(
      import.meta.dirname,
      `../peers/cluster-restate/node_modules/@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`,
    );
    const server = spawn(binary, ["--base-dir", folder, "--node-name", "n1"], {
      stdio: "ignore",
      cwd: folder,
      env: {
        ...process.env,
        DO_NOT_TRACK: "1",
        RUST_LOG: "error",
        RESTATE_BIND_ADDRESS: `127.0.0.1:${node}`,
        RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
        RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
      },
    });
    await untilHealthy(`http://127.0.0.1:${admin}/health`);
    const started: StartedWorker[] = [];
    const ports: number[] = [];
    for (let number = 0; number < workers; number += 1) {
      const port = await freePort();
      ports.push(port);
      started.push(await startWorker({ ...settings, port }));
    }
    const balancer = await balance(ports);
    const registered = await fetch(`http://127.0.0.1:${admin}/deployments`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ uri: `http://127.0.0.1:${balancer.port}`, force: true }),
    });
    if (!registered.ok) throw new Error(await registered.text());
    const session = http2.connect(`http://127.0.0.1:${ingress}`);
    session.on("error", () => undefined);
    return {
      admit: (input) => post(session, `/session/${input.session}/turn/send`, input),
      done: async () => started.reduce((sum, { report }) => sum + report.done, 0),
      processes: { ...processesOf(started), Restate: () => withChildren(server.pid ?? 0) },
      workers: started,
      async stop() {
        session.destroy();
        balancer.close();
        await Promise.all(started.map(({ child }) => end(child)));
        await end(server);
        rmSync(folder, { recursive: true, force: true });
      },
    };
  },
};

interface DbosModule {
  DBOSClient: {
    create(options: Record<string, unknown>): Promise<{
      enqueue(options: Record<string, unknown>, input: BenchInput): Promise<unknown>;
      destroy(): Promise<void>;
    }>;
  };
}

interface StartedWorker extends Worker {
  readonly child: ChildProcess;
}

async function startWorker(settings: WorkerSettings): Promise<StartedWorker> {
  const flags = (process.env.KIT_BENCH_WORKER_FLAGS ?? "").split(" ").filter((flag) => flag !== "");
  const child = fork(join(import.meta.dirname, "worker.ts"), [JSON.stringify(settings)], {
    execArgv: ["--no-deprecation", ...flags],
    env: { ...process.env, RESTATE_LOGGING: "ERROR" },
  });
  const report: Worker["report"] = { done: 0, begun: [] };
  child.on("message", (message: WorkerReport) => {
    report.done = message.done ?? 0;
    report.begun.push(...(message.begun ?? []));
  });
  await once(child, "message");
  return { child, pid: child.pid ?? 0, report, kill: (signal) => void child.kill(signal) };
}

function processesOf(workers: readonly Worker[]): Subject["processes"] {
  return { acceptor: () => [process.pid], workers: () => workers.map(({ pid }) => pid) };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGCONT");
  child.kill("SIGKILL");
  await ended;
}

async function untilBalanced(database: Database, schema: string, nodes: number): Promise<void> {
  for (;;) {
    const { rows } = await database.query(
      `SELECT count(DISTINCT pid)::int AS nodes, count(*)::int AS shards FROM pg_locks
       WHERE locktype = 'advisory' AND granted AND classid = hashtext($1)::oid`,
      [`kit shards of "${schema}"`],
    );
    if (rows[0]?.nodes === nodes && rows[0]?.shards === 256) return;
    await delay(50);
  }
}

async function untilHealthy(url: string): Promise<void> {
  for (let attempt = 0; attempt < 600; attempt += 1) {
    if (
      await fetch(url).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      return;
    await delay(50);
  }
  throw new Error(`Nothing answers at ${url}.`);
}

/** Forwards connections to the workers in turn, because Restate gets one address. */
async function balance(ports: readonly number[]) {
  let next = 0;
  const server = createServer((near) => {
    const far = connect({ host: "127.0.0.1", port: ports[next++ % ports.length] ?? 0 });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.setNoDelay(true);
      from.on("error", () => to.destroy());
      from.pipe(to);
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    close: () => void server.close(),
  };
}

function post(session: http2.ClientHttp2Session, path: string, body: unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = session.request({ ":method": "POST", ":path": path, "content-type": "application/json" });
    let status = 0;
    request.on("response", (headers) => {
      status = Number(headers[":status"]);
    });
    request.resume();
    request.on("end", () => (status < 300 ? resolve() : reject(new Error(`Restate said ${status}.`))));
    request.on("error", reject);
    request.end(JSON.stringify(body));
  });
}
