import { createHash } from "node:crypto";
import { invalid } from "./query-plan.ts";

/** The requested part of an answer. */
export interface PageRequest {
  /** 1 to 1,000; default 50. */
  readonly limit?: number | undefined;
  /** `next_cursor` of the page before. */
  readonly cursor?: string | undefined;
}

export interface ListPage<T> {
  readonly items: readonly T[];
  /** The length of the whole list, not of the page. */
  readonly total_count: number;
  readonly next_cursor?: string;
}

const defaultLimit = 50;
const maxLimit = 1000;

/**
 * One page of a list that is computed for every request. The cursor names the last item, so that no item is repeated or skipped
 * when items before it change between requests.
 *
 * Throws `invalid_request` for a limit out of range, and for a cursor of another request: `about` is all
 * of the request but its page.
 */
export function pageList<T>(
  items: readonly T[],
  { limit = defaultLimit, cursor }: PageRequest,
  { about, keyOf }: { readonly about: unknown; readonly keyOf: (item: T) => string },
): ListPage<T> {
  if (!Number.isInteger(limit) || limit < 1 || limit > maxLimit)
    throw invalid("limit", `must be a whole number from 1 to ${maxLimit}`);
  const digest = createHash("sha256").update(JSON.stringify(about)).digest("base64url").slice(0, 12);
  const start = cursor === undefined ? 0 : startOf(items.map(keyOf), { cursor, digest });
  const end = Math.min(items.length, start + limit);
  const last = items[end - 1];
  return {
    items: items.slice(start, end),
    total_count: items.length,
    ...(end < items.length && last !== undefined && { next_cursor: toCursor([digest, end, keyOf(last)]) }),
  };
}

function startOf(
  keys: readonly string[],
  page: { readonly cursor: string; readonly digest: string },
): number {
  const [digest, end, key] = parseCursor(page.cursor);
  if (digest !== page.digest || typeof end !== "number" || typeof key !== "string")
    throw invalid(
      "cursor",
      "is not a cursor of this query: pass the next_cursor of its last page, or none to begin",
    );
  if (keys[end - 1] === key) return end;
  const found = keys.indexOf(key);
  return found === -1 ? Math.min(Math.max(0, end), keys.length) : found + 1;
}

function toCursor(position: readonly [string, number, string]): string {
  return Buffer.from(JSON.stringify(position)).toString("base64url");
}

function parseCursor(cursor: string): readonly unknown[] {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    return Array.isArray(parsed) ? parsed : [];
  } catch {
    return [];
  }
}
