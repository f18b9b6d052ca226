import { isoTime } from "../../../base/clock.ts";
import type { DispatchRecord, DispatchStatus } from "../../../protocol/dispatch.ts";
import type { EventError } from "../../../protocol/event.ts";
import type { SessionKey } from "../../../protocol/session-entry.ts";
import { type Query, query } from "../../../sqlite/statements.ts";
import type { DispatchFilter, Page } from "../../contract.ts";
import { badCursor, readPage } from "../../read-page.ts";
import { createRowReader } from "../database/stored-json.ts";
import type { EmbeddedBase } from "../embedded-base.ts";

/** A row of `dispatches`; times in ms since 1970. */
export interface DispatchRow extends SessionKey {
  readonly seq: number;
  readonly dispatch_id: string;
  readonly status: DispatchStatus;
  readonly attempts: number;
  readonly fence: number;
  /** 1 once a caller has cancelled it. */
  readonly cancelling: number;
  readonly idempotency_key: string | null;
  readonly accepted_at: number;
  readonly next_attempt_at: number | null;
  readonly started_at: number | null;
  readonly ended_at: number | null;
  readonly error: string | null;
  readonly input: string;
  readonly result: string | null;
  /** `ownerOfInput`. */
  readonly owner: string;
  /** `toStoredTrace`. */
  readonly trace: string | null;
}

/** Where an input stands, without what it says. */
export type DispatchPlace = Pick<
  DispatchRow,
  "seq" | "dispatch_id" | "agent" | "instance_id" | "session" | "owner"
>;

export function toRecord(
  row: DispatchRow,
  { blobs, time }: Pick<EmbeddedBase, "blobs" | "time">,
): DispatchRecord {
  const values = createRowReader((text) => blobs.load(text));
  return {
    dispatch_id: row.dispatch_id,
    accepted_at: isoTime(row.accepted_at),
    agent: row.agent,
    instance_id: row.instance_id,
    session: row.session,
    status: row.status,
    input: values.read(row.input),
    attempts: row.attempts,
    ...(row.idempotency_key === null ? {} : { idempotency_key: row.idempotency_key }),
    ...(row.next_attempt_at === null ? {} : { next_attempt_at: isoTime(time.toWall(row.next_attempt_at)) }),
    ...(row.started_at === null ? {} : { started_at: isoTime(row.started_at) }),
    ...(row.ended_at === null ? {} : { ended_at: isoTime(row.ended_at) }),
    ...(row.result === null ? {} : { result: values.read(row.result) }),
    ...(row.error === null ? {} : { error: values.read(row.error) as EventError }),
    ...values.fault(),
  };
}

/** The line of a session. */
export function lineOf(key: SessionKey): string {
  return `session/${key.agent}\u0000${key.instance_id}\u0000${key.session}`;
}

const columns = ["agent", "instance_id", "status"] as const;
type Column = (typeof columns)[number];

/** Newest first, by their ids, which sort by time: the last one of a page is the cursor to the next. */
export function createDispatchList(base: EmbeddedBase): (filter?: DispatchFilter) => Page<DispatchRecord> {
  const { database, blobs } = base;
  const queries = new Map<string, Query<DispatchRow>>();

  function find(used: readonly Column[], filter: DispatchFilter): Query<DispatchRow> {
    const sql = `SELECT * FROM dispatches INDEXED BY ${indexFor(used, filter)}
      WHERE ${used.map((column) => `${column} = ? AND `).join("")}
      ${filter.status === "completed" || filter.status === undefined ? "" : "status <> 'completed' AND"}
      dispatch_id < ? ORDER BY dispatch_id DESC LIMIT ?`;
    let found = queries.get(sql);
    if (found === undefined) {
      found = query<DispatchRow>(database, sql);
      queries.set(sql, found);
    }
    return found;
  }

  return (filter = {}) => {
    const { cursor, limit } = filter;
    if (cursor !== undefined && !isDispatchId(cursor)) throw badCursor();
    const used = columns.filter((column) => filter[column] !== undefined);
    const values = used.map((column) => String(filter[column]));
    return readPage({
      rows: (most) => find(used, filter).each(...values, cursor ?? "~", most),
      limit,
      size: ({ input, result }) => blobs.size(input) + (result === null ? 0 : blobs.size(result)),
      toItem: (row) => toRecord(row, base),
      toCursor: ({ dispatch_id }) => dispatch_id,
    });
  };
}

function isDispatchId(text: string): boolean {
  return /^dispatch_[0-9A-HJKMNP-TV-Z]{26}$/.test(text);
}

/** Named, because SQLite's guess without statistics may be a walk over all that ever completed. */
function indexFor(used: readonly Column[], filter: DispatchFilter): string {
  if (filter.status !== undefined && filter.status !== "completed") return "dispatches_by_status";
  if (used.includes("instance_id")) return "dispatches_by_instance";
  return used.includes("agent") ? "dispatches_by_agent" : "dispatches_by_id";
}
