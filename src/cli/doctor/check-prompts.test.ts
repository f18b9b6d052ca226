import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import { createAgent } from "../../agents/define/create-agent.ts";
import { openStore } from "../../app/runtime/open-parts.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { checkDescriptions, checkRecordedPrompts } from "./check-agents.ts";

const tool = (name: string) => ({ name, description: name, input: {}, execute: () => "" });

async function hintOf(describe: (id: string) => AgentProfile): Promise<string | undefined> {
  const definition = createAgent(({ id }) => describe(id));
  const agent = {
    kind: "agent",
    name: "a",
    path: "src/agents/a.ts",
    definition,
    triggers: { webhook: false },
  } as const;
  const [check, ...others] = await checkDescriptions([agent], {});
  expect(others).toEqual([]);
  return check?.hint?.split("\n")[0];
}

test.each<readonly [string, () => AgentProfile]>([
  ["its instructions", () => ({ instructions: `It is ${new Date().toISOString()}.` })],
  ["its instructions", () => ({ instructions: `Today is ${new Date().toDateString()}.` })],
  ["its instructions", () => ({ instructions: `At ${Date.now()}` })],
  ["its instructions", () => ({ instructions: crypto.randomUUID() })],
  ["its tools", () => ({ tools: [tool(`on_day_${new Date().getUTCDate()}`)] })],
  ["its skills", () => ({ skills: [{ name: "s", description: Date(), instructions: "" }] })],
])("an agent whose function returns different texts each time is named: %s", async (what, describe) => {
  expect(await hintOf(describe)).toBe(`src/agents/a.ts: ${what}`);
});

test("an agent with a stable prompt is not reported, nor one that cannot be described here", async () => {
  expect(await hintOf((id) => ({ instructions: `For ${id}.`, tools: [tool("a")] }))).toBeUndefined();
  const since = new Date(2026, 0, 1);
  expect(await hintOf(() => ({ instructions: `Since ${since.toISOString()}` }))).toBeUndefined();
  const broken = (): never => {
    throw new Error("There is no payload.");
  };
  expect(await hintOf(broken)).toBeUndefined();
  expect(Math.abs(Date.now() - performance.timeOrigin - performance.now())).toBeLessThan(86_400_000);
});

/** Sessions as they are in `.kit/sessions.db`, each with two prompts of an agent of its own profile. */
async function recorded(profileOf: (session: number, prompt: number) => AgentProfile) {
  const repository = await createTemporaryRepository({});
  onTestFinished(() => repository[Symbol.asyncDispose]());
  mkdirSync(join(repository.root, ".kit"));
  const store = await openStore("sqlite", repository.root);
  for (let session = 0; session < 5; session += 1) {
    for (let prompt = 0; prompt < 2; prompt += 1) {
      const agent = createTestAgent(createScriptedModel([{ text: "ok" }]), profileOf(session, prompt), {
        store,
        id: String(session),
      });
      await agent.session().prompt("Go on.");
    }
  }
  await store.close();
  const [check] = await checkRecordedPrompts(repository.root, {
    config: {},
    environment: {},
    warnings: [],
  });
  return check?.hint?.split("\n") ?? [];
}

test("the logs of sessions show which part of their prompts changed", async () => {
  expect(await recorded(() => ({ instructions: "The same." }))).toEqual([]);
  expect(await recorded((session, prompt) => ({ instructions: `${session} ${prompt}` }))).toEqual([
    "instructions: changed in the middle of 5 sessions of the last 5.",
    "instructions of tester: different in each of its last 5 sessions. A time or a random text in them keeps sessions from sharing a cache.",
  ]);
  expect(
    await recorded((session, prompt) => ({ tools: [tool(session === 0 ? `t${prompt}` : "t")] })),
  ).toEqual(["tools: changed in the middle of 1 session of the last 5."]);
});
