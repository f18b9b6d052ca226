import { KitError } from "../../../base/kit-error.ts";
import type { EventLog, RunContext, RunEventBody } from "../../contract.ts";

export interface RunEventOptions {
  readonly stream: string;
  /** The index of the newest event that the log has. */
  readonly last: number;
  /** Whether what is said now was said before, or comes too late. */
  readonly isSilent: (event: RunEventBody) => boolean;
}

/** Numbers the events of a run, and puts them into its stream. */
export function createRunEvents(events: EventLog, options: RunEventOptions): RunContext["emit"] {
  let index = options.last;
  return (event) => {
    if (options.isSilent(event)) return undefined;
    try {
      events.append(options.stream, { ...event, index: index + 1 });
    } catch (error) {
      // Another process writes the stream now, and this run is about to learn of it by its signal.
      if (error instanceof KitError && error.code === "lease_lost") return undefined;
      throw error;
    }
    index += 1;
    return index;
  };
}
