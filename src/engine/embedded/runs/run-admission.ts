import { isDeepStrictEqual } from "node:util";
import { isoTime } from "../../../base/clock.ts";
import { createId } from "../../../base/id.ts";
import { query } from "../../../sqlite/statements.ts";
import type { EngineHandlers, RunReceipt, RunRequest, RunSignal } from "../../contract.ts";
import { checkJson, isName } from "../../shared/check-json.ts";
import type { EngineLimits } from "../../shared/engine-base.ts";
import { ownerOfRun } from "../../shared/queue/owner.ts";
import { checkShare } from "../../shared/queue/share-of-line.ts";
import { isNoAnswer } from "../../shared/retry-rules.ts";
import {
  alreadyEnded,
  badSignalName,
  checkSignalFits,
  hasEnded,
  mostUntaken,
  otherPayload,
  parentCancelled,
  type RunRow,
  tooManySignals,
  unknownRun,
} from "../../shared/runs/run-store.ts";
import { toStoredTrace } from "../../shared/stored-trace.ts";
import type { EmbeddedBase } from "../embedded-base.ts";
import type { JournalRows } from "./journal-rows.ts";

/** Accepts runs: resolves once one is on disk. */
export function createRunAdmission(
  base: EmbeddedBase,
  limits: EngineLimits,
): (request: RunRequest) => Promise<RunReceipt> {
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
    checkShare(waiting, owner, { limits, queue, what: "runs" });
  }

  function isSame(stored: string, payload: string): boolean {
    return stored === payload || isDeepStrictEqual(blobs.load(stored), blobs.load(payload));
  }

  return async (request) => {
    const { workflow, payload, idempotency_key: key, parent_run_id: parent } = request;
    const owner = ownerOfRun(request);
    checkJson(payload, "The payload");
    const stored = await blobs.store(payload);
    return await base.commit(() => {
      const earlier = key === undefined ? undefined : byKey.get(workflow, key);
      if (earlier !== undefined && !isSame(earlier.payload, stored)) throw otherPayload();
      if (earlier !== undefined && isNoAnswer(earlier)) freeKey.run(earlier.id);
      else if (earlier !== undefined) {
        return { run_id: earlier.run_id, accepted_at: isoTime(earlier.accepted_at) };
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
  };
}

/**
 * Keeps signals for runs, and queues a run that has waited for one. Resolves once it is on disk; the
 * same idempotency key is taken once. Throws `invalid_request`, `run_not_found`, `conflict` for a run that has ended,
 * `too_many_requests` for one that has a thousand which it has not taken.
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

  /** Throws `invalid_request` for what the open wait of that name does not take. */
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
