import { KitError } from "../../base/kit-error.ts";
import { conflict } from "../conflict.ts";

/** Conditions of Postgres that mean: another writer was there. See its manual, appendix A. */
const conflicts = new Set([
  "23503", // foreign_key_violation: the session above was deleted meanwhile
  "23505", // unique_violation
  "40001", // serialization_failure
  "40P01", // deadlock_detected
]);

/** What a query threw, as an error of kit. */
export function toStoreError(error: unknown): KitError {
  if (error instanceof KitError) return error;
  const code = codeOf(error);
  if (code !== undefined && conflicts.has(code)) return conflict(error);
  return new KitError({
    code: "unavailable",
    message: "The session store cannot be used: its database does not answer as it should.",
    hint: `Postgres: ${error instanceof Error && error.message !== "" ? error.message : String(code)}`,
    cause: error,
  });
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
