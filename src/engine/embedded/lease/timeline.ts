import type { DatabaseSync } from "node:sqlite";
import { type Clock, elapsedOf } from "../../../base/clock.ts";
import { query } from "../../../sqlite/statements.ts";
import type { Timeline } from "../../durable-time.ts";

interface TimelineRow {
  readonly time: number;
  readonly wall: number;
  readonly kept_until: number;
}

const leastJumpMs = 1_500;

export function createTimeline(database: DatabaseSync, clock: Clock): Timeline {
  const read = query<TimelineRow>(database, "SELECT time, wall, kept_until FROM timeline");
  const write = query(
    database,
    `INSERT INTO timeline (id, time, wall) VALUES (1, ?, ?)
     ON CONFLICT (id) DO UPDATE SET time = excluded.time, wall = excluded.wall`,
  );
  const keep = query(database, "UPDATE timeline SET kept_until = max(kept_until, ?) WHERE id = 1");
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
    keepUntil: (ms) => void keep.run(Math.ceil(ms)),
    mayRemove() {
      return drift() <= 0 && Number(read.get()?.kept_until ?? 0) <= now();
    },
  };
}
