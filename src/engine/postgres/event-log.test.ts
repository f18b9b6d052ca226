import { afterAll, beforeAll } from "vitest";
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
  return {
    log: engine.events,
    settle: () => engine.events.flush(),
    close: () => engine.drain({ timeoutMs: 0 }),
    reopen: () => open(schema),
  };
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
