import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { AgentRuntime } from "../agents/agent-runtime.ts";
import type { AgentProfile } from "../agents/define/agent-profile.ts";
import { type Agent, createHarness } from "../agents/harness.ts";
import { createJsonValidator } from "../app/runtime/validate-json.ts";
import { faultOfProfile } from "../app/sources/check-profile.ts";
import { resolveBackend } from "../backends/resolve-backend.ts";
import { systemClock } from "../base/clock.ts";
import { toSentence } from "../base/error-text.ts";
import { InMemorySessionStore } from "../stores/memory/memory-store.ts";

/**
 * A runtime in memory for one model: no files, no network. Fields that you pass replace the defaults.
 *
 * @example
 * ```ts
 * import { createScriptedModel, createTestRuntime } from "kit/testing";
 *
 * const runtime = createTestRuntime(createScriptedModel([{ text: "Hello." }]), { maxWaitingOperations: 1 });
 * console.log(runtime.defaultModel); // scripted/test
 * ```
 */
export function createTestRuntime(model: LanguageModelV4, over: Partial<AgentRuntime> = {}): AgentRuntime {
  return {
    store: new InMemorySessionStore(),
    resolveModel: async (name) => ({ name, model, structuredOutput: "never" }),
    resolveBackend,
    defaultModel: "scripted/test",
    sandbox: {
      name: "none",
      open: async () => {
        throw new Error("This test has no sandbox.");
      },
    },
    clock: systemClock,
    retry: { attempts: 4, baseDelayMs: 1, maxDelayMs: 5 },
    modelIdleTimeoutMs: 5_000,
    validateJson: createJsonValidator(),
    env: {},
    observers: { all: new Set(), tracing: undefined },
    maxWaitingOperations: 100,
    maxIdleSessions: 1_000,
    ...over,
  };
}

/**
 * An agent in memory: `createTestAgent(model, { instructions: "…" })`. Throws `TypeError` for a profile that an
 * application would refuse.
 *
 * @example
 * ```ts
 * import { createScriptedModel, createTestAgent } from "kit/testing";
 *
 * const agent = createTestAgent(createScriptedModel([{ text: "Hello." }]), { instructions: "Be brief." });
 * console.log((await agent.session().prompt("Hi")).text); // Hello.
 * ```
 */
export function createTestAgent<Output = unknown>(
  model: LanguageModelV4,
  profile: AgentProfile<Output> = {},
  over: Partial<AgentRuntime> & { readonly name?: string; readonly id?: string } = {},
): Agent<Output> {
  const { name = "tester", id = "1", ...runtime } = over;
  const fault = faultOfProfile(profile);
  if (fault !== undefined) throw new TypeError(toSentence(fault));
  return createHarness({ name, id }, profile, createTestRuntime(model, runtime));
}
