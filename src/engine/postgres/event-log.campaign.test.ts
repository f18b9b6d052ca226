import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { expect, test, vi } from "vitest";
import { agentStream } from "../../protocol/session-name.ts";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { handlers } from "../cases/engine-check.ts";
import type { OpenEventLog } from "../cases/event-log-cases.ts";
import { said } from "../cases/sample-events.ts";
import { eventLogContract } from "../events.suite.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";

const server = postgresForTests();
let count = 0;

async function open(schema: string): Promise<OpenEventLog> {
  const engine = await createPostgresEngine({ url: server.url, schema });
  await engine.start(handlers({}));
  const subject: OpenEventLog = {
    log: engine.events,
    settle: () => engine.events.flush(),
    close: () => engine.drain({ timeoutMs: 0 }),
    reopen: () => open(schema),
    /** Another node takes the shards and dies; this one drops its events, and takes the shards again. */
    async loseWriter(append) {
      const fence = (): number => engine.cluster?.fence({ agent: "reviewer", instance_id: "pr-7" }) ?? 0;
      const before = fence();
      const client = new pg.Client({ connectionString: server.url });
      await client.connect();
      const locker = new pg.Client({ connectionString: server.url });
      await locker.connect();
      await locker.query(`BEGIN; LOCK TABLE "${schema}".streams IN SHARE MODE`);
      append();
      await client.query(`UPDATE "${schema}".shards SET fence = fence + 1, node = 'another'`);
      await client.query(`SELECT pg_terminate_backend(backend) FROM "${schema}".nodes`);
      await vi.waitUntil(() => fence() > before, { timeout: 30_000 });
      // A write that has begun must not succeed later.
      await client.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
      );
      await locker.end();
      await client.end();
      return subject;
    },
  };
  return subject;
}

eventLogContract({
  name: "The log in Postgres",
  // Each round creates a schema and a cluster of one node.
  rounds: 5,
  create: () => {
    count += 1;
    return open(`events_${count}`);
  },
});

test("a reader gets no event of a stream before this node is its writer", async () => {
  const { log, close } = await open("unclaimed");
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await client.query('BEGIN; LOCK TABLE "unclaimed".streams IN SHARE MODE');
  const stream = agentStream("reviewer", "pr-8");
  log.append(stream, said(1));
  const next = log.subscribe(stream)[Symbol.asyncIterator]().next();
  await expect(Promise.race([next, sleep(300)])).resolves.toBeUndefined();
  await client.end();
  expect((await next).value).toMatchObject({ index: 1 });
  await close();
});
