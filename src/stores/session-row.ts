import { isoTime } from "../base/clock.ts";
import { KitError } from "../base/kit-error.ts";
import type { SessionInfo, TouchedSession, TouchedSessionPage } from "../protocol/session-entry.ts";

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

/** Converts rows with `id` and `touched_at` (ms) to a page; the query asks for `limit + 1` rows. */
export function toTouchedPage(rows: readonly SessionRow[], limit: number): TouchedSessionPage {
  const sessions = rows.slice(0, limit).map(toTouched);
  const last = rows[limit - 1];
  return rows.length > limit ? { sessions, next_cursor: String(last?.id) } : { sessions };
}

function toTouched(row: SessionRow): TouchedSession {
  const { created_at, ...info } = toInfo(row);
  const touched_at = row.touched_at === null ? created_at : isoTime(Number(row.touched_at));
  return { ...info, created_at, touched_at };
}

/** The id after which a page begins. Throws `invalid_request` for an invalid cursor. */
export function positionOf(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor);
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
