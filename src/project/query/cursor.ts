import type { KitError } from "../../base/kit-error.ts";
import { invalid, type QueryPlan } from "./query-plan.ts";

/** Where a page ends, as an opaque text. It holds only for the query that it was made for. */
export function toCursor(plan: QueryPlan, position: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify([plan.digest, ...position])).toString("base64url");
}

/** The position in a cursor; throws `invalid_request` for a text that is no cursor of this query. */
export function parseCursor(plan: QueryPlan, cursor: string): readonly unknown[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
  } catch (error) {
    throw wrongCursor(error);
  }
  if (!Array.isArray(parsed) || parsed[0] !== plan.digest) throw wrongCursor();
  return parsed.slice(1);
}

export function wrongCursor(cause?: unknown): KitError<"invalid_request"> {
  return invalid(
    "cursor",
    "is not a cursor of this query: take next_cursor of its last page, or begin without one",
    cause,
  );
}
