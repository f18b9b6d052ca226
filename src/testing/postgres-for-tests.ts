import { forTests } from "./for-tests.ts";
import { type PostgresServer, startPostgres } from "./postgres-server.ts";

/** A server with an empty database for the tests of the file. */
export function postgresForTests(): PostgresServer {
  return forTests(startPostgres, ({ stop }) => stop());
}
