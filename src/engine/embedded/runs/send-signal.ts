import { KitError } from "../../../base/kit-error.ts";
import { query } from "../../../sqlite/statements.ts";
import type { RunSignal } from "../../contract.ts";
import type { EngineBase } from "../engine-base.ts";
import { checkJson } from "./check-json.ts";
import { isName } from "./check-name.ts";
import type { JournalRows } from "./journal-rows.ts";
import { hasEnded, type RunRow } from "./run-rows.ts";

/** Signals that a run may have which it has not taken yet. */
const mostUntaken = 1_000;

/**
 * Keeps signals for runs, and queues a run that has waited for one. Resolves once it is on disk; the
 * same idempotency key is taken once. Throws `invalid_request`, `run_not_found`, `conflict` for a run that has ended,
 * `too_many_requests` for one that has a thousand which it has not taken.
 */
export function createSignalSender(
  base: EngineBase,
  journal: JournalRows,
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

  return async (runId, { name, payload = null, idempotency_key: key = null }) => {
    if (!isName(name)) throw badName();
    checkJson(payload, "The payload of the signal");
    const stored = await blobs.store(payload);
    await base.commit(() => {
      const run = find.get(runId);
      if (run === undefined) throw unknownRun();
      if (key !== null && byKey.get(run.id, key) !== undefined) return;
      if (hasEnded(run.status)) throw alreadyEnded();
      if (Number(untaken.get(run.id)?.count) >= mostUntaken) throw crowded();
      insert.run(run.id, name, key, time.now(), stored);
      if (run.status !== "waiting" || !journal.canGoOn(run.id)) return;
      wake.run(run.id);
      enqueue.run(run.id);
    });
  };
}

function badName(): KitError {
  return new KitError({
    code: "invalid_request",
    message: "The name of a signal is a text of 1 to 256 characters.",
  });
}

function unknownRun(): KitError {
  return new KitError({ code: "run_not_found", message: "There is no such run." });
}

function alreadyEnded(): KitError {
  return new KitError({ code: "conflict", message: "The run has ended, and takes no signal any more." });
}

function crowded(): KitError {
  return new KitError({
    code: "too_many_requests",
    message: `The run has ${mostUntaken} signals that it has not taken yet.`,
    meta: { retry_after_s: 60 },
  });
}
