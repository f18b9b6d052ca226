import { isoTime } from "../base/clock.ts";
import { KitError } from "../base/kit-error.ts";
import { type SessionOrder, sessionStates } from "../protocol/enums.ts";
import type { SessionInfo, TouchedSession, TouchedSessionPage } from "../protocol/session-entry.ts";
import type { SessionListing } from "./contract.ts";
import { type StoredSummary, toSummary } from "./session-summary.ts";

/** A row of `sessions` with the key of the parent session as `parent_agent` and so on. */
export type SessionRow = Readonly<Record<string, unknown>>;

export function toInfo(row: SessionRow): SessionInfo {
  return {
    agent: String(row.agent),
    instance_id: String(row.instance_id),
    session: String(row.session),
    created_at: String(row.created_at),
    position: Number(row.position),
    ...(typeof row.parent_session === "string"
      ? {
          parent: {
            agent: String(row.parent_agent),
            instance_id: String(row.parent_instance_id),
            session: row.parent_session,
          },
        }
      : {}),
  };
}

/** `used_at` of a session is behind its last entry by less than this, in ms. */
export const usedStepMs = 1_000;

/** Converts rows with `id`, `used_at` and `touched_at` (ms) to a page; the query asks for `limit + 1` rows. */
export function toTouchedPage(
  rows: readonly SessionRow[],
  { limit, order }: Pick<SessionListing, "limit" | "order">,
): TouchedSessionPage {
  const sessions = rows.slice(0, limit).map(toTouched);
  const last = rows[limit - 1];
  if (rows.length <= limit || last === undefined) return { sessions };
  return { sessions, next_cursor: toCursor({ id: Number(last.id), at: Number(last.used_at) }, order) };
}

function toTouched(row: SessionRow): TouchedSession {
  const { created_at, ...info } = toInfo(row);
  const touched_at = row.touched_at === null ? created_at : isoTime(Number(row.touched_at));
  return { ...info, created_at, touched_at, ...toSummary(toStoredSummary(row)) };
}

/** The summary in the columns `title`, `state`, `error` (JSON), `tokens` and `cost`. */
export function toStoredSummary({ title, state, error, tokens, cost }: SessionRow): StoredSummary {
  return {
    title: typeof title === "string" ? title : null,
    state: sessionStates.find((one) => one === state) ?? "idle",
    error: typeof error === "string" ? JSON.parse(error) : null,
    tokens: tokens === null ? null : Number(tokens),
    cost: cost === null ? null : Number(cost),
  };
}

/** The value of the column `error`. */
export function toErrorText(error: StoredSummary["error"] | undefined): string | null {
  return error ? JSON.stringify(error) : null;
}

/** A session's place in a list: the number of its row, and its last use for the order `recent`. */
export interface ListPlace {
  readonly id: number;
  readonly at: number;
}

/** The cursor of the page that begins after a place. */
export function toCursor({ id, at }: ListPlace, order: SessionOrder | undefined): string {
  return order === "recent" ? `${at}.${id}` : String(id);
}

/** The place after which a page begins; without a cursor, the beginning of the list. Throws `invalid_request` for an invalid cursor. */
export function placeOf(cursor: string | undefined, order: SessionOrder | undefined): ListPlace {
  const beginning = order === "newest" || order === "recent" ? Number.MAX_SAFE_INTEGER : 0;
  if (cursor === undefined) return { id: beginning, at: Number.MAX_SAFE_INTEGER };
  const [, at = "0", id] = /^(?:(\d{1,15})\.)?(\d{1,15})$/.exec(cursor) ?? [];
  if (id !== undefined && cursor.includes(".") === (order === "recent"))
    return { id: Number(id), at: Number(at) };
  throw new KitError({ code: "invalid_request", message: "The cursor is not the next_cursor of a list." });
}

/** The error of an append by a writer that lost its lease on the instance. */
export function staleWriter(): KitError {
  return new KitError({
    code: "lease_lost",
    message: "Another process owns this instance now.",
    meta: { retry_after_s: 1 },
  });
}

/** The error of an append at a position other than the session's. */
export function conflict(cause?: unknown): KitError {
  return new KitError({
    code: "conflict",
    message: "Another writer has changed this session.",
    hint: "Open the session again and repeat the call.",
    cause,
  });
}
