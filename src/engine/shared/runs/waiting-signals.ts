import { isoTime } from "../../../base/clock.ts";
import { isRecord } from "../../../base/record.ts";
import type { WaitingSignal } from "../../../protocol/waiting.ts";
import type { EngineBase } from "../engine-base.ts";
import { createRowReader } from "../stored-rows.ts";
import type { EntryRow } from "./run-journal.ts";
import { toRunWait } from "./run-store.ts";

/** A wait of a run for a signal; times in ms since 1970. */
export interface SignalRow extends Pick<EntryRow, "kind" | "name" | "deadline" | "value" | "position"> {
  readonly run_id: string;
  readonly workflow: string;
  /** At least the first 200 characters of the stored payload. */
  readonly payload: string;
  readonly begun_at: number;
}

const maxPayloadCharacters = 200;

export function toWaitingSignal(row: SignalRow, base: Pick<EngineBase, "blobs" | "time">): WaitingSignal {
  const { until } = toRunWait(row, base);
  const stored =
    row.value === null ? undefined : createRowReader((text) => base.blobs.load(text)).read(row.value);
  const { description: message, ...rest } = isRecord(stored) ? stored : {};
  // A wait with a message and without a schema.
  const schema = message !== undefined && Object.keys(rest).length === 0 ? undefined : stored;
  // A large payload is stored elsewhere.
  const start = row.payload.startsWith("blob:")
    ? undefined
    : [...row.payload].slice(0, maxPayloadCharacters).join("");
  return {
    kind: "signal",
    requested_at: isoTime(row.begun_at),
    run_id: row.run_id,
    workflow: row.workflow,
    position: row.position,
    signal: row.name,
    ...(typeof message === "string" ? { message } : {}),
    ...(schema === undefined ? {} : { schema }),
    ...(until === undefined ? {} : { until }),
    ...(start === undefined ? {} : { payload_start: start }),
  };
}
