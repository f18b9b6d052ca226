import { join } from "node:path";
import type { Clock } from "../../../base/clock.ts";
import type { Database } from "../../../sqlite/statements.ts";
import { defaultLimits, type Lease } from "../../shared/engine-base.ts";
import { type EventRetention, retentionOf, StoredEventLog } from "../../shared/events/event-log.ts";
import { SqliteEventRows } from "./event-rows.ts";
import { openEventsDatabase } from "./open-events.ts";

export interface EmbeddedEventOptions {
  /** The folder of `events.db`; it must exist. Without a folder, events are kept in memory. */
  readonly folder?: string | undefined;
  /** Holds the log's tables, instead of a folder. */
  readonly database?: Database | undefined;
  readonly clock: Clock;
  /** A process that does not hold the lease can only read. */
  readonly lease: Lease;
  /** Default: that of an engine. Above `maxBytes`, events are removed until nine tenths are left. */
  readonly retention?: Partial<EventRetention>;
  /** Whether old events can be removed now. Default: always true. */
  readonly mayRemove?: () => boolean;
}

/** Opens the event log of an engine's folder. Throws `unavailable` if the file is not an event log. */
export function openEventLog({
  folder,
  database,
  clock,
  lease,
  ...options
}: EmbeddedEventOptions): StoredEventLog {
  const retention = { ...retentionOf(defaultLimits), ...options.retention };
  const rows = new SqliteEventRows({
    database: openEventsDatabase(database ?? folder),
    file: folder === undefined ? undefined : join(folder, "events.db"),
    clock,
    lease,
    maxEvents: retention.maxEvents,
  });
  return new StoredEventLog({ rows, clock, retention, mayRemove: options.mayRemove });
}
