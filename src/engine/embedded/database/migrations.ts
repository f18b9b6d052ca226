import { dispatchTables } from "../dispatches/dispatch-tables.ts";
import { leaseTables } from "../lease/lease-tables.ts";
import { outcomeTable } from "../outcomes/outcome-table.ts";
import { openWaitsIndex, runTables } from "../runs/run-tables.ts";
import { scheduleRounds, scheduleTables } from "../schedules/schedule-tables.ts";
import { timelineTable } from "../time/timeline.ts";
import { shareTables } from "../work/share-tables.ts";
import { traceColumns } from "../work/stored-trace.ts";
import { blobTables } from "./blob-tables.ts";

/**
 * The schema, as steps: a database whose `user_version` is n has had the first n. A step that was
 * released never changes; what comes later is a further one, at the end.
 */
export const migrations: readonly string[] = [
  leaseTables + blobTables + dispatchTables + runTables + scheduleTables,
  openWaitsIndex,
  outcomeTable,
  shareTables,
  timelineTable + scheduleRounds,
  traceColumns,
];
