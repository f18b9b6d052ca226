import pg from "pg";
import { afterAll, beforeAll, vi } from "vitest";
import { type PostgresServer, startPostgres } from "../../testing/postgres-server.ts";
import { handlers } from "../cases/engine-check.ts";
import type { OpenEventLog } from "../cases/event-log-cases.ts";
import { eventLogContract } from "../events.suite.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";

let server: PostgresServer;
let count = 0;

beforeAll(async () => {
  server = await startPostgres();
});

afterAll(async () => {
  await server?.stop();
});

async function open(schema: string): Promise<OpenEventLog> {
  const engine = await createPostgresEngine({ url: server.url, schema });
  await engine.start(handlers({}));
  const subject: OpenEventLog = {
    log: engine.events,
    settle: () => engine.events.flush(),
    close: () => engine.drain({ timeoutMs: 0 }),
    reopen: () => open(schema),
    /** The same node drops its events, and regains its shards. */
    async loseWriter(append) {
      const fence = (): number => engine.cluster?.fence({ agent: "reviewer", instance_id: "pr-7" }) ?? 0;
      const before = fence();
      const client = new pg.Client({ connectionString: server.url });
      await client.connect();
      await client.query(`BEGIN; LOCK TABLE "${schema}".streams IN SHARE MODE`);
      append();
      await client.query(`SELECT pg_terminate_backend(backend) FROM "${schema}".nodes`);
      await vi.waitUntil(() => fence() > before, { timeout: 30_000 });
      // A write that has begun must not succeed later.
      await client.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
      );
      await client.query("ROLLBACK");
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
