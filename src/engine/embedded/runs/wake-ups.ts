import { query } from "../../../sqlite/statements.ts";
import type { EngineBase } from "../engine-base.ts";
import { sleepUntil } from "../work/sleep-until.ts";
import type { RunRow } from "./run-rows.ts";

export interface WakeUps {
  /** Sets the one timer to the earliest time that a run waits for. */
  arm(): void;
  stop(): void;
}

/** What one transaction wakes. */
const batch = 500;
const retryMs = 1_000;

/** Queues the runs whose time has come. Those that wait cost nothing: the first of them is read from an index. */
export function createWakeUps(base: EngineBase, options: { readonly queued: () => void }): WakeUps {
  const { database, time } = base;
  const first = query<{ at: number | null }>(
    database,
    "SELECT min(wake_at) AS at FROM runs WHERE wake_at IS NOT NULL",
  );
  const due = query<Pick<RunRow, "id">>(
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
          for (const { id } of due.all(time.now(), batch)) {
            wake.run(id);
            enqueue.run(id);
          }
        },
        { fenced: true },
      );
    } catch {
      // The store is locked or full, which passes; or the lease is lost, and somebody else does it.
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
