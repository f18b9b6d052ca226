/** `kit/stores/postgres`: sessions in a Postgres database. Needs the package `pg`. */
import "../../base/require-node.ts";

export type { PostgresPool, PostgresQuery, PostgresResult } from "../../postgres/pool.ts";
export { PostgresSessionStore, type PostgresSessionStoreOptions } from "./postgres-store.ts";
