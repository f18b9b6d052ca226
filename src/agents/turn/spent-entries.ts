import type { Clock } from "../../base/clock.ts";
import { isoTime } from "../../base/clock.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import { spentNote } from "../session/past-operation.ts";
import type { Spending } from "./budget.ts";

/** The entry that tells the log what tasks and compactions have cost since the last one; none for nothing. */
export function spentEntries(
  spending: Spending,
  operation: { readonly operationId: string; readonly clock: Clock },
): readonly SessionEntry[] {
  const value = spending.takeUnlogged();
  if (value === undefined) return [];
  const timestamp = isoTime(operation.clock.now());
  return [
    { version: 1, type: "note", name: spentNote, value, timestamp, operation_id: operation.operationId },
  ];
}
