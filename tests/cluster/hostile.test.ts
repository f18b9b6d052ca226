import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Engine } from "../../src/engine/contract.ts";
import { createPostgresEngine } from "../../src/engine/postgres/create-postgres-engine.ts";
import { createTemporaryRepository } from "../../src/testing/temporary-repository.ts";
import { addressOf, Database } from "./harness/database.ts";
import { chosenEngine } from "./harness/engines.ts";
import { Kits } from "./harness/kits.ts";
import { project } from "./harness/project.ts";

const launcher = join(import.meta.dirname, "../../bin/kit.mjs");
let database: Database;

beforeAll(async () => {
  database = await Database.start();
});

afterAll(() => database?.remove());

async function openEngine(schema: string, url = database.url, project?: string): Promise<Engine> {
  const engine = await createPostgresEngine({ url, schema, project });
  onTestFinished(() => engine.drain({ timeoutMs: 0 }));
  return engine;
}

async function work(engine: Engine, result?: string): Promise<void> {
  await engine.start({ dispatch: async (_, { input }) => result ?? input, run: async () => undefined });
}

const key = { agent: "worker", instance_id: "one", session: "default" };

/** Creates a login role with settings; returns its address. */
async function createRole(name: string, ...settings: readonly string[]): Promise<string> {
  await database.query(`CREATE ROLE ${name} LOGIN PASSWORD 'secret'`);
  for (const setting of settings) await database.query(`ALTER ROLE ${name} SET ${setting}`);
  return addressOf(database.port, { user: name, secret: "secret" });
}

test("a node of an older version refuses to start with a newer schema, and changes nothing", async () => {
  const running = await openEngine("newer");
  await work(running);
  await database.query("INSERT INTO newer.engine_migrations (version) VALUES (99)");
  const older = await createTemporaryRepository(
    project("http://127.0.0.1:1/v1", 'kind = "postgres"\nschema = "newer"'),
  );
  onTestFinished(() => older[Symbol.asyncDispose]());
  const started = spawnSync(process.execPath, [launcher, "start", "--port", "0"], {
    cwd: older.root,
    env: { ...process.env, KIT_ENGINE_URL: database.url },
    encoding: "utf8",
    timeout: 30_000,
  });
  expect(started.status).toBe(1);
  expect(started.stderr).toMatch(/The engine's store was written by a newer kit/);
  expect(started.stderr).toMatch(/Update kit, or use another schema/);
  const { dispatch_id } = await running.admit({ ...key, input: "goes on" });
  expect(await running.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed" });
});

test("clusters of two projects on one schema are reported and lose nothing; in separate schemas they do not affect each other", async () => {
  const shop = await openEngine("mistaken", database.url, "shop");
  const billing = await openEngine("mistaken", database.url, "billing");
  const apart = await openEngine("apart", database.url, "billing");
  for (const engine of [shop, billing]) await work(engine);
  await work(apart, "done apart");
  for (const engine of [shop, billing]) {
    await expect
      .poll(async () => (await engine.state?.())?.problems)
      .toContainEqual({
        code: "several_projects",
        message: expect.stringMatching(/shop \(1\), billing \(1\).*work of the others/),
        hint: expect.stringContaining("engine.schema"),
      });
    for (const instance_id of ["one", "two", "three"]) {
      const { dispatch_id } = await engine.admit({ ...key, instance_id, input: instance_id });
      expect(await engine.awaitDispatch(dispatch_id)).toMatchObject({ result: instance_id });
    }
  }
  expect((await apart.state?.())?.nodes).toHaveLength(1);
  const { dispatch_id } = await apart.admit({ ...key, input: 1 });
  expect(await apart.awaitDispatch(dispatch_id)).toMatchObject({ result: "done apart" });
  expect(await shop.getDispatch(dispatch_id)).toBeUndefined();
});

test("for a role that cannot create tables the error names the missing right", async () => {
  const url = await createRole("poor");
  await expect(openEngine("of_poor", url)).rejects.toMatchObject({
    code: "store_unavailable",
    hint: expect.stringMatching(/permission denied for database postgres\. .*GRANT CREATE ON DATABASE/),
  });
});

test("for a read-only role the first write fails with the reason, and nothing is partly accepted", async () => {
  const owner = await openEngine("read_only");
  const url = await createRole("reader", "default_transaction_read_only = on");
  await database.query(
    "GRANT USAGE ON SCHEMA read_only TO reader; GRANT ALL ON ALL TABLES IN SCHEMA read_only TO reader; GRANT ALL ON ALL SEQUENCES IN SCHEMA read_only TO reader",
  );
  const engine = await openEngine("read_only", url);
  await expect(engine.admit({ ...key, input: 1 })).rejects.toMatchObject({
    code: "store_unavailable",
    hint: expect.stringContaining("default_transaction_read_only"),
  });
  expect((await owner.load()).queued_dispatches).toBe(0);
});

test("if all connections are in use the error names max_connections, and the engine continues once some are free", async () => {
  const small = await Database.start(["max_connections=12", "superuser_reserved_connections=0"]);
  onTestFinished(() => small.remove());
  const engine = await openEngine("kit", small.url);
  await work(engine);
  const taken: pg.Client[] = [];
  for (;;) {
    const client = new pg.Client({ connectionString: small.url });
    client.on("error", () => undefined);
    const isFull = await client.connect().then(
      () => false,
      () => true,
    );
    if (isFull) break;
    taken.push(client);
  }
  await expect(createPostgresEngine({ url: small.url, schema: "kit" })).rejects.toMatchObject({
    code: "store_unavailable",
    hint: expect.stringContaining("Raise max_connections"),
  });
  for (const client of taken) await client.end();
  const { dispatch_id } = await engine.admit({ ...key, input: 1 });
  expect(await engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed" });
});

test("time limits of a role do not prevent the migration or work", async () => {
  const url = await createRole(
    "hurried",
    "statement_timeout = '500ms'",
    "lock_timeout = '100ms'",
    "idle_session_timeout = '400ms'",
  );
  await database.query("GRANT CREATE ON DATABASE postgres TO hurried");
  const other = new pg.Client({ connectionString: database.url });
  await other.connect();
  // The migration waits for the end of this transaction, which takes longer than the role's limits.
  await other.query("BEGIN; CREATE SCHEMA hurried");
  const [first] = await Promise.all([
    openEngine("hurried", url),
    delay(1_500).then(() => other.query("ROLLBACK")),
  ]);
  await other.end();
  const second = await openEngine("hurried", url);
  // On a busy machine a statement can exceed the limit: whoever sent it gets an error, and tries again.
  const patiently = async <Result>(attempt: () => Promise<Result>): Promise<Result> => {
    for (const end = Date.now() + 60_000; ; await delay(20)) {
      try {
        return await attempt();
      } catch (error) {
        if (Date.now() > end) throw error;
      }
    }
  };
  for (const engine of [first, second]) await patiently(() => work(engine));
  const ids: string[] = [];
  for (let number = 0; number < 40; number += 1) {
    const input = { ...key, instance_id: `i${number % 8}`, input: number };
    const receipt = await patiently(() => first.admit({ ...input, idempotency_key: `${number}` }));
    ids.push(receipt.dispatch_id);
  }
  for (const id of ids) {
    await expect
      .poll(async () => (await second.getDispatch(id).catch(() => undefined))?.status)
      .toBe("completed");
  }
});

/** Debian's libfaketime. */
const library = ["x86_64-linux-gnu", "aarch64-linux-gnu"]
  .map((architecture) => `/usr/lib/${architecture}/faketime`)
  .filter((folder) => existsSync(folder))
  .flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))
  .find((file) => file.endsWith("libfaketimeMT.so.1"));

test.skipIf(library === undefined)(
  "a node whose clock is an hour off works and takes over like the others",
  async () => {
    const cluster = await Kits.start(chosenEngine(), 2);
    onTestFinished(() => cluster.stop());
    const [first, second] = cluster.kits;
    if (first === undefined || second === undefined) return;
    await cluster.end(second);
    await cluster.startKit(second, {
      LD_PRELOAD: `${library}`,
      FAKETIME: "+1h",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
      KIT_CLUSTER_SKEW: "3600000",
    });
    await cluster.untilBalanced();
    const load = cluster.load({ lines: 8, each: 4, ms: 150 });
    await cluster.begun(load, 10);
    await cluster.kill(first);
    await cluster.settled(load);
    expect(await cluster.findings(load)).toEqual([]);
  },
  240_000,
);

/** A small disk, if the system allows to create one. */
function mountDisk(mb: number): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), "kit-cluster-disk-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${mb}m,mode=0755`, "tmpfs", folder], {
      stdio: "ignore",
    });
    return folder;
  } catch {
    rmSync(folder, { recursive: true });
    return undefined;
  }
}

const disk = userInfo().uid === 0 ? mountDisk(220) : undefined;

test.skipIf(disk === undefined)(
  "a full disk of the database loses nothing: callers get errors, and work continues once there is room",
  async () => {
    const folder = `${disk}`;
    mkdirSync(join(folder, "database"), { mode: 0o700 });
    const database = await Database.start(
      ["max_wal_size=64MB", "min_wal_size=32MB"],
      join(folder, "database"),
    );
    onTestFinished(async () => {
      await database.remove();
      execFileSync("umount", [folder]);
      rmSync(folder, { recursive: true });
    });
    const engine = await openEngine("kit", database.url);
    await work(engine);
    const before = await engine.admit({ ...key, input: "before" });
    expect(await engine.awaitDispatch(before.dispatch_id)).toMatchObject({ status: "completed" });
    const ballast = join(folder, "ballast");
    const { bavail, bsize } = statfsSync(folder);
    writeFileSync(ballast, Buffer.alloc(Math.max(0, bavail * bsize - 65_536)));
    const accepted: string[] = [];
    let refusal: unknown;
    for (let number = 0; number < 400 && refusal === undefined; number += 1) {
      await engine
        .admit({ ...key, instance_id: `i${number}`, input: "x".repeat(200_000) + Math.random() })
        .then(
          ({ dispatch_id }) => accepted.push(dispatch_id),
          (error: unknown) => {
            refusal = error;
          },
        );
    }
    expect(refusal).toMatchObject({ code: "store_unavailable" });
    rmSync(ballast);
    // Postgres itself can have stopped, because it could not write its log.
    await database.revive();
    for (const id of accepted) {
      await expect
        .poll(async () => (await engine.getDispatch(id).catch(() => undefined))?.status)
        .toBe("completed");
    }
  },
);
