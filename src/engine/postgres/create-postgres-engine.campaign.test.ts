import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { engineContract } from "../contract.suite.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";

const server = postgresForTests();
let count = 0;

engineContract({
  name: "The Postgres engine",
  create: (limits = {}) => {
    count += 1;
    return createPostgresEngine({ url: server.url, schema: `engine_${count}`, limits });
  },
  reopen: (limits = {}) => createPostgresEngine({ url: server.url, schema: `engine_${count}`, limits }),
});
