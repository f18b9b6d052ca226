import type { DurableStorage } from "../sqlite/durable-database.ts";

/** The storage of a Durable Object, with its alarm. */
export interface AlarmStorage extends DurableStorage {
  getAlarm(): Promise<number | null>;
  setAlarm(at: number): Promise<void>;
}

/** How long an object with unfinished work may stay out of memory. */
const atWorkMs = 30_000;
/** The least time until an alarm: the running process does what is overdue. */
const leastMs = 1_000;

/**
 * Sets the alarm of a Durable Object to the time of the engine's next work. An object without requests leaves the
 * memory, with its timers; the alarm loads it again, and its engine resumes stored work. While there is work, the
 * alarm comes every half minute, which also keeps the object in memory.
 */
export function createWakeUps(
  storage: AlarmStorage,
  onError: (error: unknown) => void,
): { set(): Promise<void>; soon(): void } {
  const isAtWork = `SELECT
    EXISTS (SELECT 1 FROM dispatches WHERE status = 'running' AND status <> 'completed')
    OR EXISTS (SELECT 1 FROM dispatches WHERE status = 'queued' AND status <> 'completed' AND next_attempt_at IS NULL)
    OR EXISTS (SELECT 1 FROM runs WHERE status IN ('queued', 'running') AND status <> 'completed') AS at_work`;
  const nextDue = `SELECT min(at) AS at FROM (
    SELECT min(next_attempt_at) AS at FROM dispatches WHERE status = 'queued' AND status <> 'completed'
    UNION ALL SELECT min(wake_at) FROM runs WHERE wake_at IS NOT NULL
    UNION ALL SELECT min(next_at) FROM schedules WHERE next_at IS NOT NULL)`;
  const read = (sql: string): number | undefined => {
    const [row] = storage.sql.exec(sql).raw();
    return typeof row?.[0] === "number" ? row[0] : undefined;
  };

  async function set(): Promise<void> {
    const now = Date.now();
    const due = read(isAtWork) === 1 ? now + atWorkMs : read(nextDue);
    if (due === undefined) return;
    const alarmAt = Math.max(due, now + leastMs);
    const current = await storage.getAlarm();
    // An alarm that comes too early sets the next one, while changing it here costs a write.
    if (current === null || current > alarmAt + leastMs) await storage.setAlarm(alarmAt);
  }

  let isComing = false;
  return {
    set,
    soon() {
      if (isComing) return;
      isComing = true;
      setTimeout(() => {
        isComing = false;
        set().catch(onError);
      }, 0);
    },
  };
}
