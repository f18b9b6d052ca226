import { isDeepStrictEqual } from "node:util";
import { isoTime } from "../../../base/clock.ts";
import { createId } from "../../../base/id.ts";
import type { DispatchReceipt } from "../../../protocol/dispatch.ts";
import type { SessionKey } from "../../../protocol/session-entry.ts";
import { query } from "../../../sqlite/statements.ts";
import type { AdmitRequest, DispatchFilter } from "../../contract.ts";
import {
  type DispatchRow,
  type DispatchStore,
  isDispatchId,
  listedDispatches,
  otherInput,
  type QueuedDispatch,
  sessionFull,
  toRecord,
} from "../../shared/dispatches/dispatch-store.ts";
import type { EngineLimits } from "../../shared/engine-base.ts";
import { checkJson } from "../../shared/json-values.ts";
import type { LineScope } from "../../shared/queue/job.ts";
import { lineOf, ownerOfInput } from "../../shared/queue/owners.ts";
import { checkShare, retryAfter } from "../../shared/queue/share-of-line.ts";
import { arrivalOf, earlierReceipt, isNoAnswer } from "../../shared/retry-rules.ts";
import { badCursor, joinsOf, readPage, toStoredTrace } from "../../shared/stored-rows.ts";
import type { EmbeddedBase } from "../embedded-base.ts";
import { createList, isIncomplete } from "../lists.ts";

export interface Admission {
  readonly receipt: DispatchReceipt;
  /** Set if the input is new or repeated: it must join its line. */
  readonly dispatch?: QueuedDispatch;
}

export interface Admissions {
  /** Resolves once the input is on disk. */
  admit(request: AdmitRequest): Promise<Admission>;
  /** Requeues an ended input at the end of its line. Throws if there is no room. Call it in a transaction. */
  putBack(row: DispatchRow): QueuedDispatch;
  /** Throws if there is no room for one more input. */
  checkRoom(key: SessionKey, owner: string): void;
}

export interface AdmissionOptions {
  readonly limits: EngineLimits;
  /** The number of inputs that wait without being stored. */
  attached(scope?: LineScope): number;
}

export function createAdmissions(base: EmbeddedBase, options: AdmissionOptions): Admissions {
  const { database, blobs, clock, queue } = base;
  const { limits, attached } = options;
  const load = query<{ waiting: number; of_owner: number; in_session: number }>(
    database,
    `SELECT waiting, coalesce((SELECT waiting FROM dispatch_shares WHERE owner = ?), 0) AS of_owner,
       (SELECT count(*) FROM (SELECT 1 FROM dispatches
         WHERE agent = ? AND instance_id = ? AND session = ? AND status = 'queued' LIMIT ?)) AS in_session
     FROM dispatch_load`,
  );
  const byKey = query<DispatchRow>(
    database,
    "SELECT * FROM dispatches WHERE agent = ? AND instance_id = ? AND idempotency_key = ?",
  );
  const insert = query<{ seq: number }>(
    database,
    `INSERT INTO dispatches (dispatch_id, agent, instance_id, session, status, idempotency_key, accepted_at, input, owner, trace)
     VALUES (?, ?, ?, ?, 'queued', ?, ?, ?, ?, ?) RETURNING seq`,
  );
  const remove = query(database, "DELETE FROM dispatches WHERE dispatch_id = ?");
  const again = query<{ seq: number }>(
    database,
    `INSERT INTO dispatches (dispatch_id, agent, instance_id, session, status, idempotency_key, accepted_at, error, input, owner, trace)
     VALUES (?, ?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?) RETURNING seq`,
  );

  function checkRoom(key: SessionKey, owner: string): void {
    const line = lineOf(key);
    const stored = load.get(owner, key.agent, key.instance_id, key.session, limits.waitingPerSession);
    const all = Number(stored?.waiting) + attached();
    const ofOwner = Number(stored?.of_owner) + attached({ owner });
    checkShare({ all, ofOwner }, owner, { limits, queue, jobs: "inputs" });
    if (Number(stored?.in_session) + attached({ line }) < limits.waitingPerSession) return;
    throw sessionFull(limits.waitingPerSession, retryAfter(queue, { line }));
  }

  function putBack(row: DispatchRow): QueuedDispatch {
    const {
      dispatch_id,
      agent,
      instance_id,
      session,
      idempotency_key: key,
      accepted_at,
      error,
      input,
      owner,
      trace,
    } = row;
    checkRoom(row, owner);
    // A new row gets a new `seq`, at the end of the line.
    remove.run(dispatch_id);
    const ids = [dispatch_id, agent, instance_id, session] as const;
    const added = again.get(...ids, key, accepted_at, error, input, owner, trace);
    const joins = joinsOf(trace);
    return { seq: Number(added?.seq), dispatch_id, agent, instance_id, session, owner, joins };
  }

  /**
   * Finds the earlier input of an idempotency key. Call it in a transaction. An input that failed with a retryable
   * error, or was cancelled, is enqueued again.
   */
  function findEarlier(request: AdmitRequest, input: string, since: number): Admission | undefined {
    if (request.idempotency_key === undefined) return undefined;
    const row = byKey.get(request.agent, request.instance_id, request.idempotency_key);
    if (row === undefined) return undefined;
    if (row.session !== request.session || !isSame(row.input, input)) throw otherInput();
    const { dispatch_id, accepted_at } = row;
    return isNoAnswer(row, since)
      ? { receipt: { dispatch_id, accepted_at: isoTime(accepted_at) }, dispatch: putBack(row) }
      : { receipt: { dispatch_id, ...earlierReceipt(row) } };
  }

  /** Compares two stored inputs; the order of an object's properties does not matter. */
  function isSame(stored: string, other: string): boolean {
    return stored === other || isDeepStrictEqual(blobs.load(stored), blobs.load(other));
  }

  return {
    putBack,
    checkRoom,
    async admit(request) {
      const since = arrivalOf(request, clock.now());
      checkJson(request.input, "The input");
      const input = await blobs.store(request.input);
      const { agent, instance_id, session, idempotency_key: key, joins = false } = request;
      const owner = ownerOfInput(request);
      return base.commit((): Admission => {
        const earlier = findEarlier(request, input, since);
        if (earlier !== undefined) return earlier;
        checkRoom(request, owner);
        const dispatch_id = createId("dispatch");
        const now = clock.now();
        const trace = toStoredTrace(request);
        const ids = [dispatch_id, agent, instance_id, session] as const;
        const row = insert.get(...ids, key ?? null, now, input, owner, trace);
        return {
          receipt: { dispatch_id, accepted_at: isoTime(now) },
          dispatch: { seq: Number(row?.seq), dispatch_id, agent, instance_id, session, owner, joins },
        };
      });
    },
  };
}

/** The rows of inputs. */
export function createDispatchRows(base: EmbeddedBase): DispatchStore {
  const { database, clock, time } = base;
  const byId = query<DispatchRow>(database, "SELECT * FROM dispatches WHERE dispatch_id = ?");
  const open = query(database, "SELECT 1 FROM dispatches WHERE dispatch_id = ? AND ended_at IS NULL");
  const cancel = query<DispatchRow>(
    database,
    `UPDATE dispatches SET cancelling = (started_at IS NOT NULL),
       ended_at = iif(started_at IS NULL, ?, NULL), next_attempt_at = NULL,
       status = iif(started_at IS NULL, 'cancelled', status)
     WHERE dispatch_id = ? AND status IN ('queued', 'running') RETURNING *`,
  );
  const claim = query<DispatchRow>(
    database,
    `UPDATE dispatches SET status = iif(cancelling, status, 'running'), attempts = attempts + iif(cancelling, 0, 1),
       fence = ?, next_attempt_at = NULL, idle = 0,
       started_at = coalesce(started_at, ?)
     WHERE dispatch_id = ? AND status = 'queued' AND coalesce(next_attempt_at, 0) <= ? RETURNING *`,
  );
  const nextAttempt = query<Pick<DispatchRow, "next_attempt_at">>(
    database,
    "SELECT next_attempt_at FROM dispatches WHERE dispatch_id = ? AND status = 'queued'",
  );
  const finish = query(
    database,
    `UPDATE dispatches SET ended_at = ?1, status = iif(cancelling, 'cancelled', ?2),
       result = iif(cancelling, NULL, ?3), error = ?4, attempts = attempts - ?7, cancelling = 0
     WHERE dispatch_id = ?5 AND (status = 'running' OR cancelling) AND fence = ?6`,
  );
  const requeue = query(
    database,
    `UPDATE dispatches SET status = 'queued', attempts = attempts - ?1, next_attempt_at = ?2, error = ?3,
       spent = coalesce(?6, spent), progress = coalesce(?7, progress)
     WHERE dispatch_id = ?4 AND status = 'running' AND fence = ?5 AND cancelling = 0`,
  );
  const recount = query(
    database,
    "UPDATE dispatches SET spent = ?, progress = ? WHERE dispatch_id = ? AND status = 'running' AND fence = ?",
  );
  const setIdle = query(
    database,
    "UPDATE dispatches SET idle = ? WHERE dispatch_id = ? AND status = 'running' AND fence = ?",
  );
  return {
    claim: ({ dispatch_id }, fence) =>
      base.commit(() => claim.get(fence, clock.now(), dispatch_id, time.now()), { fence }),
    dueAt: async (dispatchId) => nextAttempt.get(dispatchId)?.next_attempt_at,
    async finish({ dispatch_id, fence }, { status, result, error, unbegun }) {
      const write = (): number =>
        finish.run(clock.now(), status, result, error, dispatch_id, fence, Number(unbegun === true));
      await base.commit(write, { fence });
    },
    async requeue({ dispatch_id, fence }, { counted, at, error }) {
      const { spent = null, progress = null } = counted ?? {};
      const write = (): number =>
        requeue.run(Number(counted === undefined), at, error, dispatch_id, fence, spent, progress);
      return (await base.commit(write, { fence })) > 0;
    },
    async recount({ dispatch_id, fence }, { spent, progress }) {
      await base.commit(() => recount.run(spent, progress, dispatch_id, fence), { fence });
    },
    async setIdle({ dispatch_id, fence }, idle) {
      await base.commit(() => setIdle.run(Number(idle), dispatch_id, fence), { fence });
    },
    find: async (dispatchId) => byId.get(dispatchId),
    list: createDispatchList(base),
    cancel: (dispatchId) => base.commit(() => cancel.get(clock.now(), dispatchId)),
    openAmong: async (ids) => ids.filter((id) => open.get(id) !== undefined),
  };
}

function createDispatchList(base: EmbeddedBase): DispatchStore["list"] {
  const { blobs } = base;
  const list = createList<DispatchRow>(base, listedDispatches);
  return async (filter) => {
    const { cursor, agent, instance_id, session } = filter;
    if (cursor !== undefined && !isDispatchId(cursor)) throw badCursor();
    const found = list(filter, {
      before: cursor ?? listedDispatches.last,
      columns: { agent, instance_id, session },
      index: indexFor(filter),
    });
    const page = readPage({
      rows: found.rows,
      limit: filter.limit,
      size: ({ input, result }) => blobs.size(input) + (result === null ? 0 : blobs.size(result)),
      toItem: (row) => toRecord(row, base),
      toCursor: ({ dispatch_id }) => dispatch_id,
    });
    return filter.count === true ? { ...page, total: found.count() } : page;
  };
}

/** The index to use. Without statistics SQLite can choose a scan over all completed inputs, so the query names its index. */
function indexFor({ status, agent, instance_id }: DispatchFilter): string {
  if (isIncomplete(status)) return "dispatches_by_status";
  if (instance_id !== undefined) return "dispatches_by_instance";
  return agent === undefined ? "dispatches_by_id" : "dispatches_by_agent";
}
