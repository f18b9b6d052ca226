import { isDeepStrictEqual } from "node:util";
import { isoTime } from "../../../base/clock.ts";
import { createId } from "../../../base/id.ts";
import type { RunStatus } from "../../../protocol/run.ts";
import { query } from "../../../sqlite/statements.ts";
import type { EngineHandlers, RunReceipt, RunRequest, RunSignal } from "../../contract.ts";
import type { EngineLimits } from "../../shared/engine-base.ts";
import { checkJson, isName } from "../../shared/json-values.ts";
import { ownerOfRun } from "../../shared/queue/owners.ts";
import { checkShare } from "../../shared/queue/share-of-line.ts";
import { arrivalOf, earlierReceipt, isNoAnswer } from "../../shared/retry-rules.ts";
import {
  alreadyEnded,
  badSignalName,
  type ClaimedRun,
  checkSignalFits,
  hasEnded,
  listedRuns,
  mostUntaken,
  otherPayload,
  type PutBack,
  parentCancelled,
  parseRunCursor,
  type RunRow,
  type RunStore,
  tooManySignals,
  unknownRun,
} from "../../shared/runs/run-store.ts";
import { readPage, toStoredTrace } from "../../shared/stored-rows.ts";
import type { EmbeddedBase } from "../embedded-base.ts";
import { createList, isIncomplete } from "../lists.ts";
import type { JournalRows } from "./journal-rows.ts";

export interface RunAdmission {
  /** Accepts a run; resolves once the run is on disk. */
  start(request: RunRequest): Promise<RunReceipt>;
  /** Throws if the owner has no room for another waiting run. */
  checkRoom(owner: string): void;
}

export function createRunAdmission(base: EmbeddedBase, limits: EngineLimits): RunAdmission {
  const { database, blobs, clock, queue } = base;
  const byKey = query<RunRow>(database, "SELECT * FROM runs WHERE workflow = ? AND idempotency_key = ?");
  const insert = query<{ id: number }>(
    database,
    `INSERT INTO runs (run_id, workflow, status, idempotency_key, accepted_at, payload, owner, trace, parent)
     VALUES (?, ?, 'queued', ?, ?, ?, ?, ?, ?) RETURNING id`,
  );
  const ended = query(
    database,
    "SELECT 1 FROM runs WHERE run_id = ? AND (cancelling = 1 OR status = 'cancelled')",
  );
  const freeKey = query(database, "UPDATE runs SET idempotency_key = NULL WHERE id = ?");
  const enqueue = query(database, "INSERT INTO run_queue (run) VALUES (?)");
  const load = query<{ waiting: number; of_owner: number }>(
    database,
    `SELECT waiting, coalesce((SELECT waiting FROM run_shares WHERE owner = ?), 0) AS of_owner
     FROM run_shares WHERE owner = ''`,
  );

  function checkRoom(owner: string): void {
    const row = load.get(owner);
    const waiting = { all: Number(row?.waiting), ofOwner: Number(row?.of_owner) };
    checkShare(waiting, owner, { limits, queue, jobs: "runs" });
  }

  function isSame(stored: string, payload: string): boolean {
    return stored === payload || isDeepStrictEqual(blobs.load(stored), blobs.load(payload));
  }

  async function start(request: RunRequest): Promise<RunReceipt> {
    const { workflow, payload, idempotency_key: key, parent_run_id: parent } = request;
    const owner = ownerOfRun(request);
    const since = arrivalOf(request, clock.now());
    checkJson(payload, "The payload");
    const stored = await blobs.store(payload);
    return await base.commit(() => {
      const earlier = key === undefined ? undefined : byKey.get(workflow, key);
      if (earlier !== undefined && !isSame(earlier.payload, stored)) throw otherPayload();
      if (earlier !== undefined && isNoAnswer(earlier, since)) freeKey.run(earlier.id);
      else if (earlier !== undefined) {
        return { run_id: earlier.run_id, ...earlierReceipt(earlier) };
      }
      if (parent !== undefined && ended.get(parent) !== undefined) throw parentCancelled();
      checkRoom(owner);
      const run_id = createId("run");
      const now = clock.now();
      const trace = toStoredTrace(request);
      const row = insert.get(run_id, workflow, key ?? null, now, stored, owner, trace, parent ?? null);
      enqueue.run(Number(row?.id));
      return { run_id, accepted_at: isoTime(now) };
    });
  }

  return { start, checkRoom };
}

/**
 * Returns the function that stores a signal for a run, and queues a run that waits for it. It resolves once the signal is
 * on disk, and ignores a signal with a known idempotency key. Throws `invalid_request`, `run_not_found`, `conflict` for a
 * run that has ended, and `too_many_requests` for a run with too many waiting signals.
 */
export function createSignalSender(
  base: EmbeddedBase,
  journal: JournalRows,
  check: () => EngineHandlers["checkSignal"],
): (runId: string, signal: RunSignal) => Promise<void> {
  const { database, blobs, time } = base;
  const find = query<Pick<RunRow, "id" | "status">>(database, "SELECT id, status FROM runs WHERE run_id = ?");
  const byKey = query(database, "SELECT 1 FROM run_signals WHERE run = ? AND idempotency_key = ?");
  const untaken = query<{ count: number }>(
    database,
    "SELECT count(*) AS count FROM run_signals WHERE run = ? AND taken = 0",
  );
  const insert = query(
    database,
    "INSERT INTO run_signals (run, name, idempotency_key, accepted_at, payload) VALUES (?, ?, ?, ?, ?)",
  );
  const wake = query(database, "UPDATE runs SET status = 'queued', wake_at = NULL WHERE id = ?");
  const enqueue = query(database, "INSERT INTO run_queue (run) VALUES (?)");

  /** Throws `invalid_request` if the payload does not fit the schema of the open wait for the signal. */
  async function checkFit(runId: string, name: string, payload: unknown): Promise<void> {
    const run = find.get(runId);
    const schema = run === undefined ? undefined : journal.schemaOf(run.id, name);
    if (schema === undefined) return;
    await checkSignalFits({ run_id: runId, name, payload }, blobs.load(schema), check());
  }

  return async (runId, { name, payload = null, idempotency_key: key = null }) => {
    if (!isName(name)) throw badSignalName();
    checkJson(payload, "The payload of the signal");
    await checkFit(runId, name, payload);
    const stored = await blobs.store(payload);
    await base.commit(() => {
      const run = find.get(runId);
      if (run === undefined) throw unknownRun();
      if (key !== null && byKey.get(run.id, key) !== undefined) return;
      if (hasEnded(run.status)) throw alreadyEnded();
      if (Number(untaken.get(run.id)?.count) >= mostUntaken) throw tooManySignals();
      insert.run(run.id, name, key, time.now(), stored);
      if (run.status !== "waiting" || !journal.canGoOn(run.id)) return;
      wake.run(run.id);
      enqueue.run(run.id);
    });
  };
}

/** The rows of runs. */
export function createRunRows(base: EmbeddedBase, journal: JournalRows): RunStore {
  const { database, clock } = base;
  // A run that was claimed but could not be started is claimed again.
  const claim = query<ClaimedRun>(
    database,
    `UPDATE runs SET status = 'running', idle = 0, problem = NULL, started_at = coalesce(started_at, ?)
     WHERE id = ? AND status IN ('queued', 'running') RETURNING *`,
  );
  const setIdle = query(database, "UPDATE runs SET idle = ? WHERE id = ? AND status = 'running'");
  const dequeue = query(database, "DELETE FROM run_queue WHERE run = ?");
  const enqueue = query(database, "INSERT INTO run_queue (run) VALUES (?)");
  const settle = query(
    database,
    `UPDATE runs SET ended_at = ?, status = iif(cancelling, 'cancelled', ?), result = iif(cancelling, NULL, ?),
       error = iif(cancelling, NULL, ?), cancelling = 0 WHERE id = ? AND status = 'running'`,
  );
  const putBack = query<Pick<RunRow, "status">>(
    database,
    `UPDATE runs SET ended_at = iif(cancelling, ?, NULL), wake_at = iif(cancelling, NULL, ?), problem = ?,
       status = iif(cancelling, 'cancelled', ?), cancelling = 0 WHERE id = ? AND status = 'running' RETURNING status`,
  );

  const byId = query<RunRow>(database, "SELECT * FROM runs WHERE run_id = ?");
  const open = query(database, "SELECT 1 FROM runs WHERE run_id = ? AND ended_at IS NULL");
  const cancel = query<RunRow>(
    database,
    `UPDATE runs SET cancelling = (status = 'running'), ended_at = iif(status = 'running', NULL, ?),
       wake_at = NULL, status = iif(status = 'running', status, 'cancelled')
     WHERE run_id = ? AND status IN ('queued', 'running', 'waiting') RETURNING *`,
  );
  const children = query<Pick<RunRow, "run_id">>(
    database,
    "SELECT run_id FROM runs INDEXED BY runs_by_parent WHERE parent = ? ORDER BY id",
  );
  const below = (runId: string): string[] =>
    children.all(runId).flatMap(({ run_id }) => [run_id, ...below(run_id)]);

  /** Returns the run's status after the write. Call it in a transaction. */
  function requeue(run: RunRow, how: PutBack): RunStatus {
    // A signal may have arrived while the run was being suspended.
    const mayWait = how.status === "waiting" && (how.problem !== null || !journal.canGoOn(run.id));
    const { wakeAt = null, problem } = mayWait ? how : { problem: null };
    const next = mayWait ? "waiting" : "queued";
    const status = putBack.get(clock.now(), wakeAt, problem, next, run.id)?.status ?? next;
    if (status === "queued") enqueue.run(run.id);
    return status;
  }

  return {
    claim: ({ id }, fence) =>
      base.commit(
        () => {
          dequeue.run(id);
          return claim.get(clock.now(), id);
        },
        { fence },
      ),
    async setIdle({ id }, idle, fence) {
      await base.commit(() => setIdle.run(Number(idle), id), { fence });
    },
    async settle({ id }, { status, result, error }, fence) {
      await base.commit(() => settle.run(clock.now(), status, result, error, id), { fence });
    },
    putBack: (run, how, fence) => base.commit(() => requeue(run, how), { fence }),
    find: async (runId) => byId.get(runId),
    list: createRunList(base),
    cancel: (runId) =>
      base.commit(() => {
        const cancelled = cancel.get(clock.now(), runId);
        if (cancelled !== undefined) dequeue.run(cancelled.id);
        return cancelled;
      }),
    descendants: async (runId) => below(runId),
    openAmong: async (ids) => ids.filter((id) => open.get(id) !== undefined),
  };
}

function createRunList(base: EmbeddedBase): RunStore["list"] {
  const { blobs } = base;
  const list = createList<RunRow>(base, listedRuns);
  return async (filter) => {
    const { workflow, status, limit, cursor } = filter;
    const byWorkflow = workflow === undefined ? undefined : "runs_by_workflow";
    const found = list(filter, {
      before: parseRunCursor(cursor),
      columns: { workflow },
      index: isIncomplete(status) ? "runs_by_status" : byWorkflow,
    });
    const page = readPage({
      rows: found.rows,
      limit,
      size: ({ payload, result }) => blobs.size(payload) + (result === null ? 0 : blobs.size(result)),
      toItem: (row) => row,
      toCursor: ({ id }) => String(id),
    });
    return filter.count === true ? { ...page, total: found.count() } : page;
  };
}
