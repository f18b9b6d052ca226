/** `kit/testing`: a model that follows a script, agents in memory, and the promises that stores keep. */
export { type ContractCase, type SessionStoreSubject, sessionStoreCases } from "../stores/contract-cases.ts";
export { createScriptedModel, type Script, type ScriptedModel, type ScriptedTurn } from "./scripted-model.ts";
export { createTestAgent, createTestRuntime } from "./test-runtime.ts";
