import { type Clock, elapsedOf } from "../../../base/clock.ts";
import { type Database, query } from "../../../sqlite/statements.ts";
import type { WaitClock } from "../../shared/durable-time.ts";

/**
 * The time that durable waits are counted in. It goes on as evenly as the machine does, asleep or awake, over restarts
 * and changes of hands, whatever is done to the time of day; so a sleep of 20 s takes 20 s. While no process
 * runs, the time of day is all there is to count by: then it never goes back, and a clock that was set forward counts
 * as time that has passed.
 */
export interface Timeline extends WaitClock {
  /** Reads the position that another process has stored. */
  resume(): void;
  /** Stores the position. Call it in a transaction. */
  mark(): void;
  /**
   * By how many milliseconds the time of day was set since the last look: forward, back (negative), or 0. What is less than
   * 1.5 s is none: a time service corrects it bit by bit.
   */
  jump(): number;
  /** Keeps all records until a time of the timeline. Call it in a transaction. */
  keepUntil(ms: number): void;
  /** Whether retention may remove old records now. */
  mayRemove(): boolean;
}

interface TimelineRow {
  readonly time: number;
  readonly wall: number;
  readonly kept_until: number;
}

const leastJumpMs = 1_500;

export function createTimeline(database: Database, clock: Clock): Timeline {
  const read = query<TimelineRow>(database, "SELECT time, wall, kept_until FROM timeline");
  const write = query(
    database,
    `INSERT INTO timeline (id, time, wall) VALUES (1, ?, ?)
     ON CONFLICT (id) DO UPDATE SET time = excluded.time, wall = excluded.wall`,
  );
  const keepUntil = query(database, "UPDATE timeline SET kept_until = max(kept_until, ?) WHERE id = 1");
  /** The timeline minus the process's own count, in ms. */
  let ahead = 0;
  /** The time of day minus the timeline, in ms. */
  let offset = 0;

  const counted = (): number => elapsedOf(clock) + (clock.asleep?.() ?? 0);
  const now = (): number => Math.floor(ahead + counted());

  /** By how much the time of day has left this since the last look; 0 while that is little. */
  function drift(): number {
    const by = clock.now() - now() - offset;
    return Math.abs(by) < leastJumpMs ? 0 : by;
  }

  function resume(): void {
    const row = read.get();
    const wall = clock.now();
    const away = row === undefined ? 0 : Math.max(0, wall - row.wall);
    ahead = (row === undefined ? wall : row.time + away) - counted();
    offset = wall - now();
  }

  resume();
  return {
    sleep: clock.sleep,
    now,
    toWall: (ms) => Math.round(ms + offset + drift()),
    resume,
    mark: () => void write.run(now(), Math.round(clock.now())),
    jump() {
      const by = drift();
      offset += by;
      return by;
    },
    keepUntil: (ms) => void keepUntil.run(Math.ceil(ms)),
    mayRemove() {
      return drift() <= 0 && Number(read.get()?.kept_until ?? 0) <= now();
    },
  };
}
