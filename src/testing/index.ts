/** `kit/testing`: a scripted model, agents and apps in memory, and the test cases of stores, sandboxes, engines and backends. */

import "../base/require-node.ts";

export { createToolContext } from "../agents/define/tool-context.ts";
export type { Clock } from "../base/clock.ts";
export type { ContractCase } from "../base/contract-case.ts";
export { type EventLogSubject, eventLogCases, type OpenEventLog } from "../engine/cases/event-log-cases.ts";
export { type EngineCaseLimits, type EngineSubject, engineCases } from "../engine/contract-cases.ts";
export { type Recording, type RecordingOptions, readRecording } from "../models/recording/read-recording.ts";
export { type SandboxSubject, sandboxCases } from "../sandboxes/contract-cases.ts";
export { startFakeE2b } from "../sandboxes/e2b/testing/fake-e2b.ts";
export type { FakeTrouble, FakeVendor } from "../sandboxes/remote/testing/fake-vendor.ts";
export { type SessionStoreSubject, sessionStoreCases } from "../stores/contract-cases.ts";
export type { WaitAnswers } from "./answer-waits.ts";
export { backendCases } from "./backend/backend-cases.ts";
export type { BackendSubject } from "./backend/backend-stage.ts";
export { createManualClock, type ManualClock } from "./manual-clock.ts";
export { createScriptedModel, type Script, type ScriptedModel, type ScriptedTurn } from "./scripted-model.ts";
export { openTestApp, type TestAppOptions } from "./test-app.ts";
export { createTestAgent, createTestRuntime } from "./test-runtime.ts";
export { openTestService, type TestService, type TestServiceOptions } from "./test-service.ts";
