import type { ContractCase } from "../base/contract-case.ts";
import { attemptCases } from "./cases/attempt-cases.ts";
import { awaitingCases } from "./cases/awaiting-cases.ts";
import { callCases } from "./cases/call-cases.ts";
import { deliveryCases } from "./cases/delivery-cases.ts";
import { dispatchCases } from "./cases/dispatch-cases.ts";
import { endingCases } from "./cases/ending-cases.ts";
import type { EngineSubject } from "./cases/engine-check.ts";
import { heldCases } from "./cases/held-cases.ts";
import { listCases } from "./cases/list-cases.ts";
import { patchCases } from "./cases/patch-cases.ts";
import { replayCases } from "./cases/replay-cases.ts";
import { retryCases } from "./cases/retry-cases.ts";
import { runCases } from "./cases/run-cases.ts";
import { scheduleCases } from "./cases/schedule-cases.ts";
import { shareCases } from "./cases/share-cases.ts";
import { stepCases } from "./cases/step-cases.ts";
import { waitingCallCases } from "./cases/waiting-call-cases.ts";

export type { EngineCaseLimits, EngineSubject } from "./cases/engine-check.ts";

/**
 * The promises of `Engine` as tests for any runner. Each case creates a new engine and drains it at its end.
 * For a subject without `reopen`, the cases that reopen stored work are skipped.
 *
 * @example
 * import { test } from "node:test";
 * import type { Engine } from "kit/contracts";
 * import { type EngineCaseLimits, engineCases } from "kit/testing";
 *
 * declare const createMyEngine: (limits: EngineCaseLimits | undefined) => Engine;
 * for (const { name, run } of engineCases({ create: (limits) => createMyEngine(limits) })) test(name, run);
 */
export function engineCases(subject: EngineSubject): readonly ContractCase[] {
  return [
    ...dispatchCases(subject),
    ...shareCases(subject),
    ...attemptCases(subject),
    ...endingCases(subject),
    ...callCases(subject),
    ...waitingCallCases(subject),
    ...runCases(subject),
    ...awaitingCases(subject),
    ...listCases(subject),
    ...stepCases(subject),
    ...replayCases(subject),
    ...heldCases(subject),
    ...retryCases(subject),
    ...patchCases(subject),
    ...scheduleCases(subject),
    ...deliveryCases(subject),
  ];
}
