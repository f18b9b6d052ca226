import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../testing/free-port.ts";
import { type PostgresServer, startPostgres } from "../../testing/postgres-server.ts";
import { handlers } from "../cases/engine-check.ts";
import { engineContract } from "../contract.suite.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";

const program = "pgbouncer";

function isInstalled(): boolean {
  try {
    execFileSync(program, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** PgBouncer in front of a server: each transaction gets one of four connections. */
async function startPooler(
  url: URL,
  mode: "transaction" | "session" = "transaction",
): Promise<{ readonly url: string; readonly child: ChildProcess; readonly folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), "kit-pooler-"));
  await chmod(folder, 0o755);
  const port = await freePort();
  const database = url.pathname.slice(1);
  const file = join(folder, "pgbouncer.ini");
  const settings = `[databases]
${database} = host=${url.hostname} port=${url.port} dbname=${database} user=${url.username} password=${decodeURIComponent(url.password)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
default_pool_size = 4
max_client_conn = 500
logfile =
`;
  await writeFile(file, settings, { mode: 0o644 });
  // PgBouncer refuses to run as root.
  const asUser = process.getuid?.() === 0 ? ["--user", "daemon"] : [];
  const child = spawn(program, [...asUser, file], { stdio: "ignore" });
  while (!(await answers(port))) await sleep(50);
  return { url: `postgres://${url.username}@127.0.0.1:${port}/${database}`, child, folder };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

describe.skipIf(!isInstalled())(
  "behind PgBouncer in transaction mode (skipped where it is not installed)",
  () => {
    let server: PostgresServer;
    let pooler: Awaited<ReturnType<typeof startPooler>>;
    let count = 0;

    beforeAll(async () => {
      server = await startPostgres();
      pooler = await startPooler(new URL(server.url));
    });

    afterAll(async () => {
      pooler?.child.kill("SIGKILL");
      await server?.stop();
      if (pooler !== undefined) await rm(pooler.folder, { recursive: true, force: true });
    });

    test("an engine that has only the pooler's address does not start, and names the setting", async () => {
      const both = await Promise.all(
        ["one", "two"].map(() => createPostgresEngine({ url: pooler.url, schema: "only_pooled" })),
      );
      for (const engine of both) {
        await expect(engine.start(handlers({}))).rejects.toMatchObject({
          code: "invalid_request",
          hint: expect.stringContaining("direct_url"),
        });
        await engine.drain({ timeoutMs: 0 });
      }
    });

    test("an engine behind a pooler that keeps the connection of a session starts", async () => {
      const keeping = await startPooler(new URL(server.url), "session");
      const engine = await createPostgresEngine({ url: keeping.url, schema: "kept", maxConnections: 1 });
      await engine.start(handlers({}));
      expect(engine.cluster?.owns({ run_id: "run_1" })).toBe(true);
      await engine.drain({ timeoutMs: 0 });
      keeping.child.kill("SIGKILL");
      await rm(keeping.folder, { recursive: true, force: true });
    });

    const open = (limits: Parameters<typeof createPostgresEngine>[0]["limits"] = {}) =>
      createPostgresEngine({ url: pooler.url, directUrl: server.url, schema: `pooled_${count}`, limits });

    engineContract({
      name: "The Postgres engine",
      create: (limits) => {
        count += 1;
        return open(limits);
      },
      reopen: open,
    });
  },
);
