/** `kit/stores/postgres`: sessions in a Postgres database. Needs the package `pg`. */
import "../../base/require-node.ts";

export type { PostgresQuery, PostgresResult } from "../../postgres/named-statements.ts";
export type { PostgresPool } from "../../postgres/pool.ts";
export { PostgresSessionStore, type PostgresSessionStoreOptions } from "./postgres-store.ts";
