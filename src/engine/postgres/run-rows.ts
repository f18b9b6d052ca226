import { isDeepStrictEqual } from "node:util";
import { isoTime } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import type { RunStatus } from "../../protocol/run.ts";
import type { Page, RunFilter, RunReceipt, RunRequest, RunSignal } from "../contract.ts";
import { leaseLost } from "../shared/engine-base.ts";
import { checkJson, isName } from "../shared/json-values.ts";
import { ownerOfRun } from "../shared/queue/owners.ts";
import { checkShare } from "../shared/queue/share-of-line.ts";
import { arrivalOf, earlierReceipt, isNoAnswer } from "../shared/retry-rules.ts";
import {
  alreadyEnded,
  badSignalName,
  type ClaimedRun,
  checkSignalFits,
  crashText,
  forgetFailures,
  hasEnded,
  listedRuns,
  mostCrashes,
  mostUntaken,
  notFailed,
  otherPayload,
  type PutBack,
  parentCancelled,
  parseRunCursor,
  type QueuedRun,
  type RunEnd,
  type RunRow,
  type RunStore,
  tooManySignals,
  unknownRun,
} from "../shared/runs/run-store.ts";
import { toStoredTrace } from "../shared/stored-rows.ts";
import { readList } from "./lists.ts";
import { type PostgresBase, toText } from "./postgres-base.ts";
import type { JournalRows } from "./run-journal.ts";
import { shardOf } from "./shards.ts";

/** Accepts a run: resolves once it is on disk. */
export async function admitRun(base: PostgresBase, request: RunRequest): Promise<RunReceipt> {
  checkJson(request.payload, "The payload");
  const payload = toText(request.payload);
  const since = arrivalOf(request, base.clock.now());
  for (;;) {
    const earlier = await findEarlier(base, request, { payload, since });
    if (earlier !== undefined) return earlier;
    await checkParent(base, request.parent_run_id);
    await checkRoom(base, ownerOfRun(request));
    const receipt = await insertRun(base, request, payload);
    // Another node was faster with the same key: the next round finds its run.
    if (receipt !== undefined) return receipt;
  }
}

async function insertRun(
  base: PostgresBase,
  request: RunRequest,
  payload: string,
): Promise<RunReceipt | undefined> {
  const run_id = createId("run");
  const now = base.clock.now();
  const row = await base.database.row(
    `INSERT INTO $s.runs (run_id, workflow, shard, status, idempotency_key, accepted_at, payload, owner, trace, parent)
     VALUES ($1, $2, $3, 'queued', $4, $5, $6, $7, $8, $9)
     ON CONFLICT (workflow, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING RETURNING 1`,
    [
      run_id,
      request.workflow,
      shardOf({ run_id }),
      request.idempotency_key ?? null,
      now,
      payload,
      ownerOfRun(request),
      toStoredTrace(request),
      request.parent_run_id ?? null,
    ],
  );
  return row === undefined ? undefined : { run_id, accepted_at: isoTime(now) };
}

/** The earlier run of an idempotency key. A run that is not a final answer loses its key. */
async function findEarlier(
  { database }: PostgresBase,
  { workflow, idempotency_key: key }: RunRequest,
  { payload, since }: { readonly payload: string; readonly since: number },
): Promise<RunReceipt | undefined> {
  if (key === undefined) return undefined;
  const row = await database.row<RunRow>(
    "SELECT * FROM $s.runs WHERE workflow = $1 AND idempotency_key = $2",
    [workflow, key],
  );
  if (row === undefined) return undefined;
  const isSame = row.payload === payload || isDeepStrictEqual(JSON.parse(row.payload), JSON.parse(payload));
  if (!isSame) throw otherPayload();
  if (!isNoAnswer(row, since)) return { run_id: row.run_id, ...earlierReceipt(row) };
  await database.run("UPDATE $s.runs SET idempotency_key = NULL WHERE id = $1", [row.id]);
  return undefined;
}

async function checkParent({ database }: PostgresBase, parent: string | undefined): Promise<void> {
  if (parent === undefined) return;
  const ended = await database.row(
    "SELECT 1 FROM $s.runs WHERE run_id = $1 AND (cancelling OR status = 'cancelled')",
    [parent],
  );
  if (ended !== undefined) throw parentCancelled();
}

async function checkRoom({ database, limits, queue }: PostgresBase, owner: string): Promise<void> {
  const row = await database.row<{ waiting: number; count: number }>(
    `SELECT (SELECT count(*) FROM (SELECT 1 FROM $s.runs WHERE status = 'queued' LIMIT $1) AS few) AS waiting,
       (SELECT count(*) FROM (SELECT 1 FROM $s.runs WHERE owner = $2 AND status = 'queued' LIMIT $1) AS few) AS count`,
    [limits.waiting, owner],
  );
  const load = { all: row?.waiting ?? 0, ofOwner: row?.count ?? 0 };
  checkShare(load, owner, { limits, queue, jobs: "runs" });
}

/** Queues a failed run again, in the order of newly accepted runs. Returns its row. */
export async function retryRun(base: PostgresBase, runId: string): Promise<RunRow> {
  const { database } = base;
  const found = await database.row<RunRow>("SELECT * FROM $s.runs WHERE run_id = $1", [runId]);
  if (found === undefined) throw unknownRun();
  if (found.status !== "failed") throw notFailed();
  await checkRoom(base, found.owner);
  return await database.transaction(async (ask) => {
    const [row] = await ask<RunRow>(
      `UPDATE $s.runs SET status = 'queued', ended_at = NULL, error = NULL, result = NULL, crashes = 0, crashed_at = 0,
         charged = '{}', queued_as = nextval('$s.run_queue') WHERE run_id = $1 AND status = 'failed' RETURNING *`,
      [runId],
    );
    if (row === undefined) throw notFailed();
    for (const sql of forgetFailures("$s.run_journal", "$1")) await ask(sql, [row.id]);
    return row;
  });
}

/** Stores a signal for a run. Resolves once it is on disk, with true if the run waited for it and is queued now. */
export async function sendSignal(
  base: PostgresBase,
  journals: JournalRows,
  { run_id, signal }: { readonly run_id: string; readonly signal: RunSignal },
): Promise<boolean> {
  const { name, payload = null, idempotency_key: key = null } = signal;
  if (!isName(name)) throw badSignalName();
  checkJson(payload, "The payload of the signal");
  await checkFit(base, journals, { run_id, name, payload });
  return await base.database.transaction(async (ask) => {
    const [run] = await ask<RunRow>("SELECT id, status FROM $s.runs WHERE run_id = $1 FOR UPDATE", [run_id]);
    if (run === undefined) throw unknownRun();
    const [duplicate] = await ask("SELECT 1 FROM $s.run_signals WHERE run = $1 AND idempotency_key = $2", [
      run.id,
      key,
    ]);
    if (duplicate !== undefined) return false;
    if (hasEnded(run.status)) throw alreadyEnded();
    const [untaken] = await ask<{ count: number }>(
      "SELECT count(*) AS count FROM $s.run_signals WHERE run = $1 AND NOT taken",
      [run.id],
    );
    if (Number(untaken?.count) >= mostUntaken) throw tooManySignals();
    await ask(
      "INSERT INTO $s.run_signals (run, name, idempotency_key, accepted_at, payload) VALUES ($1, $2, $3, $4, $5)",
      [run.id, name, key, base.clock.now(), toText(payload)],
    );
    const woken = await ask(
      `UPDATE $s.runs SET status = 'queued', wake_at = NULL, queued_as = nextval('$s.run_queue')
       WHERE id = $1 AND status = 'waiting' AND EXISTS (SELECT 1 FROM $s.run_journal
         WHERE run = $1 AND kind = 'wait' AND state = 'pending' AND name = $2) RETURNING 1`,
      [run.id, name],
    );
    return woken.length > 0;
  });
}

async function checkFit(
  { database, blobs, handlers }: PostgresBase,
  journals: JournalRows,
  signal: { readonly run_id: string; readonly name: string; readonly payload: unknown },
): Promise<void> {
  const run = await database.row<RunRow>("SELECT id FROM $s.runs WHERE run_id = $1", [signal.run_id]);
  const schema = run === undefined ? undefined : await journals.schemaOf(run.id, signal.name);
  if (schema !== undefined) await checkSignalFits(signal, blobs.load(schema), handlers()?.checkSignal);
}

/** SQL: whether a signal has arrived for an open wait of a run, or a run has ended that an open step waits for. */
const canGoOn = `(EXISTS (
  SELECT 1 FROM $s.run_journal JOIN $s.run_signals USING (run, name)
  WHERE run = $1 AND NOT taken AND kind = 'wait' AND state = 'pending')
OR EXISTS (
  SELECT 1 FROM $s.run_journal AS step WHERE run = $1 AND kind = 'step' AND state = 'pending' AND NOT EXISTS (
    SELECT 1 FROM $s.runs WHERE run_id = btrim(step.value, '"') AND ended_at IS NULL)))`;

/** The rows of runs. */
export class RunRows implements RunStore {
  readonly #base: PostgresBase;

  constructor(base: PostgresBase) {
    this.#base = base;
  }

  async claim({ id, run_id }: QueuedRun, fence: number): Promise<ClaimedRun | undefined> {
    return await this.#base.database.row<ClaimedRun>(
      `WITH own AS MATERIALIZED (SELECT fence FROM $s.shards WHERE shard = $2 AND fence = $3 FOR SHARE)
       UPDATE $s.runs AS r SET status = 'running', fence = own.fence, wake_at = NULL, idle = false, problem = NULL,
         started_at = coalesce(started_at, $4)
       FROM own WHERE r.id = $1 AND (r.status = 'queued' OR (r.status = 'running' AND r.fence = own.fence))
       RETURNING r.*`,
      [id, shardOf({ run_id }), fence, this.#base.clock.now()],
    );
  }

  async setIdle({ id }: RunRow, idle: boolean, fence: number): Promise<void> {
    await this.#base.database.run(
      "UPDATE $s.runs SET idle = $1 WHERE id = $2 AND status = 'running' AND fence = $3",
      [idle, id, fence],
    );
  }

  /** A repeated call succeeds: the first may have been committed although its answer was lost. */
  async settle({ id }: RunRow, { status, result, error }: RunEnd, fence: number): Promise<void> {
    const row = await this.#base.database.row(
      `WITH settled AS (
         UPDATE $s.runs SET ended_at = $3, cancelling = false, status = CASE WHEN cancelling THEN 'cancelled' ELSE $4 END,
           result = CASE WHEN cancelling THEN NULL ELSE $5 END, error = CASE WHEN cancelling THEN NULL ELSE $6 END
         WHERE id = $1 AND fence = $2 AND status = 'running' RETURNING 1)
       SELECT 1 FROM settled UNION ALL SELECT 1 FROM $s.runs WHERE id = $1 AND fence = $2 AND ended_at IS NOT NULL`,
      [id, fence, this.#base.clock.now(), status, result, error],
    );
    if (row === undefined) throw leaseLost();
  }

  async putBack({ id }: RunRow, how: PutBack, fence: number): Promise<RunStatus> {
    const now = this.#base.clock.now();
    const { wakeAt = null, problem } = how.status === "waiting" ? how : { problem: null };
    return await this.#base.database.transaction(async (ask) => {
      // The row is locked first: a concurrent signal is either found here, or finds that the run waits.
      const ownedRows = await ask(
        "SELECT 1 FROM $s.runs WHERE id = $1 AND fence = $2 AND status = 'running' FOR UPDATE",
        [id, fence],
      );
      if (ownedRows.length === 0) throw leaseLost();
      const [row] = await ask<Pick<RunRow, "status">>(
        `WITH next AS (
           SELECT CASE WHEN cancelling THEN 'cancelled' WHEN $2::text = 'queued' OR ($5::text IS NULL AND ${canGoOn})
               THEN 'queued'
             ELSE 'waiting' END AS status FROM $s.runs WHERE id = $1
         )
         UPDATE $s.runs AS r SET status = next.status, cancelling = false,
           queued_as = CASE WHEN next.status = 'queued' THEN nextval('$s.run_queue') ELSE queued_as END,
           wake_at = CASE WHEN next.status = 'waiting' THEN $3::bigint END, problem = $5,
           ended_at = CASE WHEN next.status = 'cancelled' THEN $4::bigint END
         FROM next WHERE r.id = $1 RETURNING r.status`,
        [id, how.status, wakeAt, now, problem],
      );
      return row?.status ?? how.status;
    });
  }

  async find(runId: string): Promise<RunRow | undefined> {
    return await this.#base.database.row<RunRow>("SELECT * FROM $s.runs WHERE run_id = $1", [runId]);
  }

  list(filter: RunFilter): Promise<Page<RunRow>> {
    return readList<RunRow, RunRow>(
      this.#base,
      { filter, listed: listedRuns },
      {
        from: "$s.runs",
        before: parseRunCursor(filter.cursor),
        columns: { workflow: filter.workflow },
        size: ({ payload, result }) => payload.length + (result?.length ?? 0),
        toItem: (row) => row,
        toCursor: ({ id }) => String(id),
      },
    );
  }

  async cancel(runId: string): Promise<RunRow | undefined> {
    return await this.#base.database.row<RunRow>(
      `UPDATE $s.runs SET cancelling = (status = 'running'), wake_at = NULL,
         ended_at = CASE WHEN status = 'running' THEN NULL ELSE $1::bigint END,
         status = CASE WHEN status = 'running' THEN status ELSE 'cancelled' END
       WHERE run_id = $2 AND status IN ('queued', 'running', 'waiting') RETURNING *`,
      [this.#base.clock.now(), runId],
    );
  }

  async descendants(runId: string): Promise<readonly string[]> {
    const rows = await this.#base.database.rows<Pick<RunRow, "run_id">>(
      `WITH RECURSIVE below AS (
         SELECT run_id, id FROM $s.runs WHERE parent = $1
         UNION SELECT r.run_id, r.id FROM $s.runs AS r JOIN below ON r.parent = below.run_id)
       SELECT run_id FROM below ORDER BY id`,
      [runId],
    );
    return rows.map(({ run_id }) => run_id);
  }

  async openAmong(runIds: readonly string[]): Promise<readonly string[]> {
    const rows = await this.#base.database.rows<Pick<RunRow, "run_id">>(
      "SELECT run_id FROM $s.runs WHERE run_id = ANY($1) AND ended_at IS NULL",
      [runIds],
    );
    return rows.map(({ run_id }) => run_id);
  }

  /** Whether these shards have runs that have not ended. */
  async areOpen(shards: readonly number[]): Promise<boolean> {
    const row = await this.#base.database.row(
      "SELECT 1 FROM $s.runs WHERE status IN ('queued', 'running', 'waiting') AND shard = ANY($1) LIMIT 1",
      [shards],
    );
    return row !== undefined;
  }
}

/**
 * Queues the suspended runs that wait for a run that has ended, and returns their ids. The rows are locked before their
 * status is read: a run that is being suspended either finds the end itself, or is found here.
 */
export async function wakeAwaiting({ database }: PostgresBase, ended: string): Promise<readonly string[]> {
  const rows = await database.rows<Pick<RunRow, "run_id">>(
    `WITH found AS MATERIALIZED (
       SELECT id, status FROM $s.runs WHERE id IN (
         SELECT run FROM $s.run_journal WHERE state = 'pending' AND kind = 'step' AND value = $1) FOR UPDATE
     )
     UPDATE $s.runs AS r SET status = 'queued', wake_at = NULL, queued_as = nextval('$s.run_queue')
     FROM found WHERE r.id = found.id AND found.status = 'waiting' RETURNING r.run_id`,
    [JSON.stringify(ended)],
  );
  return rows.map(({ run_id }) => run_id);
}

/** The ended runs that suspended runs of these shards wait for: their node died before it could call `wakeAwaiting`. */
export async function awaitedEnds(
  { database }: PostgresBase,
  shards: readonly number[],
): Promise<readonly string[]> {
  const rows = await database.rows<Pick<RunRow, "run_id">>(
    `SELECT DISTINCT ended.run_id FROM $s.run_journal AS step JOIN $s.runs AS r ON r.id = step.run
       JOIN $s.runs AS ended ON ended.run_id = btrim(step.value, '"')
     WHERE step.state = 'pending' AND step.kind = 'step' AND r.status = 'waiting' AND r.problem IS NULL
       AND r.shard = ANY($1)
       AND ended.ended_at IS NOT NULL`,
    [shards],
  );
  return rows.map(({ run_id }) => run_id);
}

/**
 * Queues runs that wait because of their code, and returns their ids: all, or those in the given shards that a former owner has
 * held, since its code may have been another.
 */
export async function queueHeld(
  { database }: Pick<PostgresBase, "database">,
  shards?: readonly number[],
): Promise<readonly string[]> {
  const rows = await database.rows<Pick<RunRow, "run_id">>(
    `UPDATE $s.runs AS r SET status = 'queued', queued_as = nextval('$s.run_queue') FROM $s.shards AS own
     WHERE own.shard = r.shard AND r.problem IS NOT NULL AND r.status = 'waiting'
       AND ($1::int[] IS NULL OR r.shard = ANY($1) AND r.fence < own.fence) RETURNING r.run_id`,
    [shards ?? null],
  );
  return rows.map(({ run_id }) => run_id);
}

/**
 * Takes over the runs that former owners of shards were executing: requeues them, ends cancelled runs, and fails runs that
 * seem to cause the crashes. Only deaths of a node that worked on a run count, and only those without progress in the journal.
 * Returns the ended runs.
 */
export async function recoverRuns(base: PostgresBase, shards: readonly number[]): Promise<readonly RunRow[]> {
  const rows = await base.database.rows<RunRow>(
    `WITH abandoned AS (
       SELECT r.id, progress.entries,
         CASE WHEN progress.entries > r.crashed_at THEN least(r.crashes + died.count, 1) ELSE r.crashes + died.count END AS crashes,
         CASE WHEN progress.entries > r.crashed_at THEN '{}' ELSE r.charged END
           || CASE WHEN died.count = 1 THEN ARRAY[own.former] ELSE '{}' END AS charged
       FROM $s.runs AS r JOIN $s.shards AS own ON own.shard = r.shard AND r.fence < own.fence,
         LATERAL (SELECT (count(*) + count(ended_as))::int AS entries FROM $s.run_journal WHERE run = r.id) AS progress,
         LATERAL (SELECT CASE WHEN own.former IS NULL OR r.idle THEN 0 ELSE 1 END AS count) AS died
       WHERE r.shard = ANY($1) AND r.status = 'running' FOR UPDATE OF r
     )
     UPDATE $s.runs AS r SET crashes = a.crashes, crashed_at = a.entries, charged = a.charged, cancelling = false,
       queued_as = nextval('$s.run_queue'),
       status = CASE WHEN r.cancelling THEN 'cancelled' WHEN a.crashes >= ${mostCrashes} THEN 'failed' ELSE 'queued' END,
       ended_at = CASE WHEN r.cancelling OR a.crashes >= ${mostCrashes} THEN $2::bigint END,
       error = CASE WHEN NOT r.cancelling AND a.crashes >= ${mostCrashes} THEN $3 END
     FROM abandoned AS a WHERE r.id = a.id RETURNING r.*`,
    [shards, base.clock.now(), crashText],
  );
  return rows.filter(({ status }) => status !== "queued");
}
