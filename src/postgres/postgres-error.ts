import { KitError } from "../base/kit-error.ts";
import { storeUnavailable } from "../protocol/error-code.ts";

/** Conditions that Postgres reports after a conflict with another writer. See its manual, appendix A. */
const conflicts = new Set([
  "23503", // foreign_key_violation: the session was deleted meanwhile
  "23505", // unique_violation
  "40001", // serialization_failure
  "40P01", // deadlock_detected
]);

/** Conditions, or classes of them, about the server, the connection or the rights, not about the statement. */
const outages: readonly string[] = [
  "08", // connection exception
  "25006", // read_only_sql_transaction: a standby answers, for example during a failover
  "28", // invalid authorization
  "3D000", // invalid_catalog_name: the database does not exist
  "3F000", // invalid_schema_name
  "42501", // insufficient_privilege
  "42P01", // undefined_table: the tables are being restored
  "53", // insufficient resources: connections, memory, disk
  "55", // not in prerequisite state: locks, a database that is being started
  "57", // operator intervention: shutdown, cannot connect now, cancelled
  "58", // system error: reading or writing failed
];

/** Advice for the operator, by the code of a condition or its prefix; the first match applies. */
const advice: readonly (readonly [string, string])[] = [
  [
    "42501",
    "Give the role of the address its rights: GRANT CREATE ON DATABASE for the first start, then ownership of the schema's tables, or ALL on them.",
  ],
  [
    "25006",
    "The database refuses writes: a standby answers at the address, or default_transaction_read_only is set for the role.",
  ],
  ["28", "Check the role and the password in the address."],
  ["3D000", "Create the database, or correct its name in the address."],
  ["53100", "Free space on the database's disk. Accepted work is kept, and continues automatically."],
  [
    "53300",
    "Raise max_connections, or let fewer processes connect: a node of kit holds up to 23 connections.",
  ],
  ["55P03", "Lift the limit for the role: ALTER ROLE … SET lock_timeout = 0."],
  ["57014", "Lift the limit for the role: ALTER ROLE … SET statement_timeout = 0."],
];

export interface StoreErrorOptions {
  /** The subject of error messages: `The session store`. */
  readonly store: string;
  /** Since when the database has not answered, in ms since 1970. */
  readonly since: number;
  /** The error of a query that conflicts with another writer. Default: `unavailable`. */
  readonly toConflict?: ((error: unknown) => KitError) | undefined;
}

/** Converts an error of a query to an error of kit. */
export function toStoreError(error: unknown, { store, since, toConflict }: StoreErrorOptions): KitError {
  if (error instanceof KitError) return error;
  const code = sqlState(error);
  if (code !== undefined && conflicts.has(code) && toConflict !== undefined) return toConflict(error);
  const reason = code === undefined ? "its database cannot be reached" : "its database returned an error";
  const message = error instanceof Error && error.message !== "" ? error.message : String(code);
  const [, step] = advice.find(([start]) => code?.startsWith(start) === true) ?? [];
  const hint = step === undefined ? `Postgres: ${message}` : `Postgres: ${message}. ${step}`;
  // An error without a condition does not come from Postgres, but from the connection.
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

/** Whether an error comes from the server, so that the server has answered. */
export function hasAnswered(error: unknown): boolean {
  return sqlState(error) !== undefined;
}

/** The condition (SQLSTATE) of an error of the server: five digits or capitals, unlike the codes of Node's errors. */
function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return undefined;
  return /^(?=.*\d)[0-9A-Z]{5}$/.test(error.code) ? error.code : undefined;
}
