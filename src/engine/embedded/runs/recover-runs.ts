import { query } from "../../../sqlite/statements.ts";
import type { EngineBase } from "../engine-base.ts";
import type { RunRow } from "./run-rows.ts";

/** How often a process may die under a run, at one place of its journal, before the run is given up. */
const mostCrashes = 5;

/**
 * Takes over the runs that a dead process has left at work: queues them, but for those whose end was
 * asked for, and those that seem to be what their process dies of. Only a run that has got no further
 * since the last crash comes nearer to that, so that one bad run does not end those beside it.
 */
export function createRecovery({ database, clock }: EngineBase): () => void {
  const left = query<RunRow>(
    database,
    "SELECT * FROM runs INDEXED BY runs_by_status WHERE status = 'running' AND status <> 'completed' ORDER BY id",
  );
  const progress = query<{ entries: number }>(
    database,
    "SELECT count(*) + count(ended_as) AS entries FROM run_journal WHERE run = ?",
  );
  const end = query(
    database,
    "UPDATE runs SET status = ?, ended_at = ?, error = ?, crashes = ?, cancelling = 0 WHERE id = ?",
  );
  const requeue = query(
    database,
    "UPDATE runs SET status = 'queued', crashes = ?, crashed_at = ? WHERE id = ?",
  );
  const enqueue = query(database, "INSERT OR IGNORE INTO run_queue (run) VALUES (?)");

  /** In a transaction. */
  return () => {
    for (const run of left.all()) {
      const entries = Number(progress.get(run.id)?.entries);
      const crashes = entries > run.crashed_at ? 1 : run.crashes + 1;
      if (run.cancelling === 1) end.run("cancelled", clock.now(), null, crashes, run.id);
      else if (crashes >= mostCrashes) end.run("failed", clock.now(), crashText, crashes, run.id);
      else {
        requeue.run(crashes, entries, run.id);
        enqueue.run(run.id);
      }
    }
  };
}

const crashText = JSON.stringify({
  type: "internal_error",
  message: `The process ended ${mostCrashes} times while the run was at the same place.`,
});
