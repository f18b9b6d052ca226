import { describe, test } from "vitest";
import { type EventLogSubject, eventLogCases } from "./cases/event-log-cases.ts";

/** The promises of `EventLog`, for the tests of this repository. */
export function eventLogContract(subject: EventLogSubject & { readonly name: string }): void {
  describe(`${subject.name} as an event log`, () => {
    for (const { name, run } of eventLogCases(subject)) test(name, run);
  });
}
