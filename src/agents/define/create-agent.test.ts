import { expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { type AgentProfile, profileSchema } from "./agent-profile.ts";
import {
  type AgentDefinition,
  createAgent,
  defineAgentProfile,
  mergeProfiles,
  profileToRole,
  roleToProfile,
} from "./create-agent.ts";
import { defineCommand, defineTool } from "./tool.ts";

const tool = (name: string) =>
  defineTool({ name, description: "", input: { type: "object" }, execute: () => "" });

test("fields of the second profile replace those of the first, and lists are joined", () => {
  const base = defineAgentProfile({
    name: "base",
    model: "a/1",
    instructions: "Base.",
    allowWrite: true,
    tools: [tool("one")],
    commands: [defineCommand("test", "npm test")],
    skills: [{ name: "s", description: "", instructions: "x" }],
    roles: [{ name: "r", description: "", instructions: "x" }],
    subagents: [{ name: "helper" }],
    allowedCommands: ["git"],
  });
  const merged = mergeProfiles(base, {
    model: "b/2",
    allowWrite: false,
    tools: [tool("two")],
    subagents: [{ name: "other" }],
    allowedCommands: ["npm"],
  });
  expect(merged).toMatchObject({ name: "base", model: "b/2", instructions: "Base.", allowWrite: false });
  expect(merged.tools?.map(({ name }) => name)).toEqual(["one", "two"]);
  expect(merged.subagents?.map(({ name }) => name)).toEqual(["helper", "other"]);
  expect(merged.allowedCommands).toEqual(["git", "npm"]);
  expect(merged.commands).toHaveLength(1);
  expect([merged.skills, merged.roles].map((list) => list?.length)).toEqual([1, 1]);
});

test("settings are merged field by field, and what says undefined says nothing", () => {
  const merged = mergeProfiles(
    { budget: { maxTurns: 5, maxTokens: 100 }, compaction: { reserveTokens: 1 }, model: "a/1" },
    JSON.parse('{"budget": {"maxTurns": 9}, "compaction": {"keepRecentTokens": 2}}'),
  );
  expect(merged).toEqual({
    budget: { maxTurns: 9, maxTokens: 100 },
    compaction: { reserveTokens: 1, keepRecentTokens: 2 },
    model: "a/1",
  });
  expect(mergeProfiles({ model: "a/1" }, { ...({ model: undefined } as object) })).toEqual({ model: "a/1" });
});

test("settings of Python are merged where both profiles have some, and replaced by true and false", () => {
  const base = { functions: { a: () => 1 }, resourceLimits: { maxMemory: 1, maxDurationSecs: 2 } };
  const over = { functions: { b: () => 2 }, resourceLimits: { maxMemory: 3 } };
  expect(mergeProfiles({ python: base }, { python: over }).python).toEqual({
    functions: over.functions,
    resourceLimits: { maxMemory: 3, maxDurationSecs: 2 },
  });
  expect(mergeProfiles({ python: base }, { python: false }).python).toBe(false);
  expect(mergeProfiles({ python: true }, { python: over }).python).toBe(over);
});

test("a list inside of settings, a list of models and a sandbox are replaced", () => {
  const sandbox = { name: "own", open: () => Promise.reject(new Error("none")) };
  const merged = mergeProfiles(
    {
      modelSettings: { stopSequences: ["a"], seed: 1 },
      model: ["a/1", "a/2"],
      sandbox: { ...sandbox, remove: async () => {} },
    },
    { modelSettings: { stopSequences: ["b"] }, model: ["b/1"], sandbox },
  );
  expect(merged).toEqual({ modelSettings: { stopSequences: ["b"], seed: 1 }, model: ["b/1"], sandbox });
  expect(merged.sandbox).toBe(sandbox);
});

// Values by the kind of a field's schema: what both profiles have, and what comes of it.
const byKind: Readonly<
  Record<string, { readonly base: unknown; readonly over: unknown; readonly merged: unknown }>
> = {
  array: { base: [1], over: [2], merged: [1, 2] },
  object: { base: { one: 1, two: 1 }, over: { two: 2 }, merged: { one: 1, two: 2 } },
  union: { base: { one: 1, two: 1 }, over: { two: 2 }, merged: { one: 1, two: 2 } },
  enum: { base: 1, over: 2, merged: 2 },
  string: { base: 1, over: 2, merged: 2 },
  boolean: { base: 1, over: 2, merged: 2 },
  number: { base: 1, over: 2, merged: 2 },
  custom: { base: { one: 1 }, over: { two: 2 }, merged: { two: 2 } },
};
const fields = Object.entries(profileSchema.shape).filter(
  ([field]) => !["hooks", "approvals"].includes(field),
);

test.each(fields)("the field %s is merged as its schema says", (field, { _zod: { def } }) => {
  const { base, over, merged } = byKind[def.innerType._zod.def.type] ?? {};
  expect(merged).toBeDefined();
  expect(mergeProfiles({ [field]: base }, { [field]: over })).toEqual({ [field]: merged });
});

test("the merged profile has the output of the second, or of the first where the second has none", () => {
  const price = defineAgentProfile({ output: z.object({ cents: z.number() }) });
  const verdict = defineAgentProfile({ output: z.object({ isMerged: z.boolean() }) });
  const quiet = defineAgentProfile({ allowWrite: false });
  expectTypeOf(mergeProfiles(price, quiet)).toEqualTypeOf<AgentProfile<{ cents: number }>>();
  expectTypeOf(mergeProfiles(quiet, price)).toEqualTypeOf<AgentProfile<{ cents: number }>>();
  expectTypeOf(mergeProfiles(price, verdict)).toEqualTypeOf<AgentProfile<{ isMerged: boolean }>>();
  expectTypeOf(mergeProfiles(quiet, quiet)).toEqualTypeOf<AgentProfile>();
  const merged = createAgent(mergeProfiles(price, { instructions: "Be exact." }));
  expectTypeOf(merged).toEqualTypeOf<AgentDefinition<{ cents: number }>>();
  expect(mergeProfiles(price, verdict).output).toBe(verdict.output);
});

test("neither profile is changed", () => {
  const base = Object.freeze({ tools: Object.freeze([tool("one")]), budget: Object.freeze({ maxTurns: 1 }) });
  const over = Object.freeze({ tools: Object.freeze([tool("two")]) });
  expect(mergeProfiles(base, over).tools).toHaveLength(2);
  expect(base.tools).toHaveLength(1);
});

// The sources of one setting, from the strongest: the call, its role, the profile, the default.
test.each([
  ["call", { model: "call/m", thinkingLevel: "minimal" }, { model: "call/m", reasoning: "minimal" }],
  ["role", { role: "strong" }, { model: "role/m", reasoning: "high" }],
  ["call over role", { role: "strong", model: "call/m" }, { model: "call/m", reasoning: "high" }],
  ["profile", {}, { model: "profile/m", reasoning: "low" }],
  [
    "profile under a role that says nothing of it",
    { role: "mute" },
    { model: "profile/m", reasoning: "low" },
  ],
] as const)("model and thinking level come from the %s", async (_name, options, expected) => {
  const model = createScriptedModel([{ text: "x" }]);
  const agent = createTestAgent(model, {
    model: "profile/m",
    thinkingLevel: "low",
    roles: [
      { name: "strong", description: "", instructions: "Be strong.", model: "role/m", thinkingLevel: "high" },
      { name: "mute", description: "", instructions: "Say little." },
    ],
  });
  const result = await agent.session().prompt("hi", options);
  expect({ model: result.model.id, reasoning: model.calls[0]?.reasoning }).toEqual(expected);
});

test("without a word from anybody the runtime's model is taken, and the provider's own thinking", async () => {
  const model = createScriptedModel([{ text: "x" }]);
  const result = await createTestAgent(model, {}, { defaultModel: "default/m" }).session().prompt("hi");
  expect(result.model.id).toBe("default/m");
  expect(model.calls[0]?.reasoning).toBeUndefined();
});

test("a subagent has its parent's settings where it names none of its own, and its own roles first", async () => {
  const model = createScriptedModel((call) => ({ text: JSON.stringify(call.prompt[0]) }));
  const agent = createTestAgent(model, {
    model: "parent/m",
    instructions: "Parent.",
    subagents: [
      { name: "a", instructions: "Child." },
      { name: "b", model: "child/m" },
    ],
  });
  const a = await agent.session().task("x", { agent: "a" });
  const b = await agent.session().task("x", { agent: "b" });
  expect([a.model.id, b.model.id]).toEqual(["parent/m", "child/m"]);
  expect(a.text).toContain("Child.");
  expect(a.text + b.text).not.toContain("Parent.");
});

test("a profile can be a role and a role a profile, with what both have", () => {
  const role = profileToRole({
    name: "reviewer",
    description: "Reviews.",
    instructions: "Look.",
    model: "a/1",
    thinkingLevel: "high",
    allowWrite: true,
  });
  expect(role).toEqual({
    name: "reviewer",
    description: "Reviews.",
    instructions: "Look.",
    model: "a/1",
    thinkingLevel: "high",
  });
  expect(profileToRole(roleToProfile(role))).toEqual(role);
  expect(() => profileToRole({})).toThrow("name");
});
