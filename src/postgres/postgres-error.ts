import { KitError } from "../base/kit-error.ts";
import { storeUnavailable } from "../protocol/error-code.ts";

/** Conditions of Postgres that mean: another writer was there. See its manual, appendix A. */
const conflicts = new Set([
  "23503", // foreign_key_violation: the session above was deleted meanwhile
  "23505", // unique_violation
  "40001", // serialization_failure
  "40P01", // deadlock_detected
]);

/** Classes of conditions that say something about the server, the connection or the rights, not about the statement. */
const outages: readonly string[] = [
  "08", // connection exception
  "25006", // read_only_sql_transaction: a standby answers, as in the middle of a failover
  "28", // invalid authorization
  "3D000", // invalid_catalog_name: the database is not there
  "3F000", // invalid_schema_name
  "42501", // insufficient_privilege
  "42P01", // undefined_table: the tables are being put back
  "53", // insufficient resources: connections, memory, disk
  "55", // not in prerequisite state: locks, a database that is being started
  "57", // operator intervention: shutdown, cannot connect now, cancelled
  "58", // system error: reading or writing failed
];

/** Steps of an operator against a condition, by its code or the start of it; the first that fits. */
const advice: readonly (readonly [string, string])[] = [
  [
    "42501",
    "Give the role of the address its rights: GRANT CREATE ON DATABASE for the first start, then ownership of the schema's tables, or ALL on them.",
  ],
  [
    "25006",
    "It takes no writes: a standby answers at the address, or default_transaction_read_only is set for the role.",
  ],
  ["28", "Check the role and the password in the address."],
  ["3D000", "Create the database, or correct its name in the address."],
  ["53100", "Make room on its disk. Accepted work is kept, and continues by itself."],
  [
    "53300",
    "Raise max_connections, or let fewer processes connect: a node of kit holds up to 22 connections.",
  ],
  ["55P03", "Lift the limit for the role: ALTER ROLE … SET lock_timeout = 0."],
  ["57014", "Lift the limit for the role: ALTER ROLE … SET statement_timeout = 0."],
];

export interface StoreErrorOptions {
  /** As the subject of an error's sentence: `The session store`. */
  readonly store: string;
  /** Since when the database has not answered, in ms since 1970. */
  readonly since: number;
  /** The error of a query that met another writer. Default: `unavailable`. */
  readonly toConflict?: ((error: unknown) => KitError) | undefined;
}

/** Converts an error of a query to an error of kit. */
export function toStoreError(error: unknown, { store, since, toConflict }: StoreErrorOptions): KitError {
  if (error instanceof KitError) return error;
  const code = sqlState(error);
  if (code !== undefined && conflicts.has(code) && toConflict !== undefined) return toConflict(error);
  const reason = "its database does not answer as it should";
  const message = error instanceof Error && error.message !== "" ? error.message : String(code);
  const [, advised] = advice.find(([start]) => code?.startsWith(start) === true) ?? [];
  const hint = advised === undefined ? `Postgres: ${message}` : `Postgres: ${message}. ${advised}`;
  // An error without a condition name does not come from Postgres: the connection is at fault.
  if (code === undefined || outages.some((start) => code.startsWith(start))) {
    return storeUnavailable({ store, reason, hint, since, cause: error });
  }
  return new KitError({
    code: "unavailable",
    message: `${store} cannot be used: ${reason}.`,
    hint,
    cause: error,
  });
}

/** Whether an error is something that the server itself has said. */
export function hasAnswered(error: unknown): boolean {
  return sqlState(error) !== undefined;
}

/** The condition that the server has named: five digits or capitals, where a code of Node's has a word. */
function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return undefined;
  return /^(?=.*\d)[0-9A-Z]{5}$/.test(error.code) ? error.code : undefined;
}
