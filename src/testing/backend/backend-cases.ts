import type { ContractCase } from "../../base/contract-case.ts";
import type { BackendSubject } from "./backend-stage.ts";
import { durableChecks } from "./durable-cases.ts";
import { loopChecks } from "./loop-cases.ts";
import { workChecks } from "./work-cases.ts";

/**
 * Returns the tests that every backend passes, for any runner: `for (const { name, run } of backendCases({ create: () =>
 * myBackend })) test(name, run)`. Each test has its own agent in memory, with a scripted model.
 *
 * @example
 * ```ts
 * import { test } from "node:test";
 * import type { AgentBackend } from "kit";
 * import { backendCases } from "kit/testing";
 *
 * declare const planFirst: AgentBackend; // yours
 * for (const { name, run } of backendCases({ create: () => planFirst })) test(name, run);
 * ```
 */
export function backendCases(subject: BackendSubject): readonly ContractCase[] {
  const checks = { ...loopChecks, ...workChecks, ...durableChecks };
  return Object.entries(checks).map(([name, check]) => ({ name, run: () => check(subject) }));
}
