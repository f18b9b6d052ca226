import { describe, test } from "vitest";
import { attemptCases } from "./cases/attempt-cases.ts";
import { callCases } from "./cases/call-cases.ts";
import { dispatchCases } from "./cases/dispatch-cases.ts";
import type { EngineSubject } from "./cases/engine-check.ts";
import { listCases } from "./cases/list-cases.ts";
import { replayCases } from "./cases/replay-cases.ts";
import { runCases } from "./cases/run-cases.ts";
import { scheduleCases } from "./cases/schedule-cases.ts";
import { shareCases } from "./cases/share-cases.ts";
import { stepCases } from "./cases/step-cases.ts";

/** The promises of `Engine`, for the tests of this repository. */
export function engineContract(subject: EngineSubject & { readonly name: string }): void {
  describe(`${subject.name} as an engine`, () => {
    for (const { name, run } of dispatchCases(subject)) test(name, run);
    for (const { name, run } of shareCases(subject)) test(name, run);
    for (const { name, run } of attemptCases(subject)) test(name, run);
    for (const { name, run } of callCases(subject)) test(name, run);
    for (const { name, run } of runCases(subject)) test(name, run);
    for (const { name, run } of listCases(subject)) test(name, run);
    for (const { name, run } of stepCases(subject)) test(name, run);
    for (const { name, run } of replayCases(subject)) test(name, run);
    for (const { name, run } of scheduleCases(subject)) test(name, run);
  });
}
