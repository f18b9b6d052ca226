/** `kit/testing`: a model that follows a script, agents in memory, and the suites that stores pass. */
export { createScriptedModel, type Script, type ScriptedModel, type ScriptedTurn } from "./scripted-model.ts";
export { createTestAgent, createTestRuntime } from "./test-runtime.ts";
