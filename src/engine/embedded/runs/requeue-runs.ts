import { query } from "../../../sqlite/statements.ts";
import { recount } from "../../shared/counted-attempts.ts";
import { sleepUntil } from "../../shared/durable-time.ts";
import { crashText, mostCrashes, type RunRow } from "../../shared/runs/run-store.ts";
import type { EmbeddedBase } from "../embedded-base.ts";

export interface WakeUps {
  /** Sets the timer to the earliest time that a run waits for. */
  arm(): void;
  stop(): void;
}

/** The most runs that one transaction queues. */
const batch = 500;
const retryMs = 1_000;

/** Queues runs at the times that they wait for. Waiting runs need no memory: the earliest time is read from an index. */
export function createWakeUps(base: EmbeddedBase, options: { readonly queued: () => void }): WakeUps {
  const { database, time } = base;
  const first = query<{ at: number | null }>(
    database,
    "SELECT min(wake_at) AS at FROM runs WHERE wake_at IS NOT NULL",
  );
  const dueRuns = query<Pick<RunRow, "id">>(
    database,
    "SELECT id FROM runs INDEXED BY runs_by_wake WHERE wake_at <= ? ORDER BY wake_at LIMIT ?",
  );
  const wake = query(database, "UPDATE runs SET status = 'queued', wake_at = NULL WHERE id = ?");
  const enqueue = query(database, "INSERT INTO run_queue (run) VALUES (?)");
  let timer: AbortController | undefined;
  let armedAt = Number.POSITIVE_INFINITY;

  function stop(): void {
    timer?.abort();
    timer = undefined;
    armedAt = Number.POSITIVE_INFINITY;
  }

  function setTimer(at: number): void {
    stop();
    armedAt = at;
    timer = new AbortController();
    sleepUntil(time, at, timer.signal).then(
      () => void wakeThoseDue(),
      () => undefined,
    );
  }

  function arm(): void {
    const at = first.get()?.at;
    if (at !== null && at !== undefined && at < armedAt) setTimer(at);
  }

  async function wakeThoseDue(): Promise<void> {
    const { signal } = base.lease;
    stop();
    try {
      await base.commit(
        () => {
          for (const { id } of dueRuns.all(time.now(), batch)) {
            wake.run(id);
            enqueue.run(id);
          }
        },
        { fenced: true },
      );
    } catch {
      // Retries after a fault of the store. After a lost lease, the new holder wakes the runs.
      if (!signal.aborted && !base.stopping.aborted) setTimer(time.now() + retryMs);
      return;
    }
    if (signal.aborted || base.stopping.aborted) return;
    options.queued();
    arm();
  }

  base.stopping.addEventListener("abort", stop, { once: true });
  return { arm, stop };
}

/** Returns the function that queues the runs that wait because of their code. Call it in a transaction. */
export function createHeldQueue({ database }: EmbeddedBase): () => void {
  const heldRuns = query<Pick<RunRow, "id">>(
    database,
    "SELECT id FROM runs INDEXED BY runs_held WHERE problem IS NOT NULL AND status = 'waiting' ORDER BY id",
  );
  const requeue = query(database, "UPDATE runs SET status = 'queued' WHERE id = ?");
  const enqueue = query(database, "INSERT OR IGNORE INTO run_queue (run) VALUES (?)");
  return () => {
    for (const { id } of heldRuns.all()) {
      requeue.run(id);
      enqueue.run(id);
    }
  };
}

/**
 * Returns the function that takes over the runs of a dead process: it requeues them, ends cancelled runs, and fails runs
 * that seem to cause the crashes. Only deaths of a process that worked on a run count, and only those without progress in the
 * journal, so that one bad run does not end the others.
 */
export function createRecovery({ database, clock, lease }: EmbeddedBase): () => void {
  // `status <> 'completed'` repeats the condition of the partial index, which SQLite otherwise does not use.
  const interruptedRuns = query<
    RunRow & { readonly cancelling: number; readonly crashed_at: number; readonly idle: number }
  >(
    database,
    "SELECT * FROM runs INDEXED BY runs_by_status WHERE status = 'running' AND status <> 'completed' ORDER BY id",
  );
  const journal = query<{ entries: number }>(
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

  // Call it in a transaction.
  return () => {
    for (const run of interruptedRuns.all()) {
      const died = lease.holderDied && run.idle === 0;
      const { spent: crashes, progress } = recount(
        { spent: run.crashes + Number(died), progress: run.crashed_at },
        Number(journal.get(run.id)?.entries),
      );
      if (run.cancelling === 1) end.run("cancelled", clock.now(), null, crashes, run.id);
      else if (crashes >= mostCrashes) end.run("failed", clock.now(), crashText, crashes, run.id);
      else {
        requeue.run(crashes, progress, run.id);
        enqueue.run(run.id);
      }
    }
  };
}
