import { afterAll, beforeAll } from "vitest";
import { type PostgresServer, startPostgres } from "../../testing/postgres-server.ts";
import { engineContract } from "../contract.suite.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";

let server: PostgresServer;
let count = 0;

beforeAll(async () => {
  server = await startPostgres();
});

afterAll(async () => {
  await server?.stop();
});

engineContract({
  name: "The Postgres engine",
  create: (limits = {}) => {
    count += 1;
    return createPostgresEngine({ url: server.url, schema: `engine_${count}`, limits });
  },
  reopen: (limits = {}) => createPostgresEngine({ url: server.url, schema: `engine_${count}`, limits }),
});
