import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createAgent } from "../../agents/define/create-agent.ts";
import { SqliteSessionStore } from "../../stores/sqlite/sqlite-store.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTemporaryRepository, type TemporaryRepository } from "../../testing/temporary-repository.ts";
import type { App } from "./app.ts";
import { initAgent, openAgents, openService } from "./open-service.ts";

async function repository(): Promise<TemporaryRepository> {
  const folder = await createTemporaryRepository({
    "AGENTS.md": "## House\n\nBe brief.\n",
    "kit.toml": '[agent]\nmodel = "scripted/test"\n',
    ".agents/skills/triage.md": "Sort new issues.\n",
    ".agents/roles/careful.md": "Check twice.\n",
    "src/agents/helper.ts": 'export default { kind: "kit.agent", describe: async () => ({}) };\n',
  });
  onTestFinished(() => folder[Symbol.asyncDispose]());
  return folder;
}

test("initAgent creates a program's own agent with the configuration of a repository", async () => {
  const { root } = await repository();
  const reported: string[] = [];
  const model = createScriptedModel(({ prompt }) => {
    reported.push(JSON.stringify(prompt[0]));
    return { text: "ok" };
  });
  const definition = createAgent((ctx) => ({
    name: "reporter",
    instructions: `Reports ${ctx.id} for ${String(ctx.payload.who)} in ${ctx.env.REGION}.`,
  }));
  const options = { root, env: { REGION: "eu" }, models: { "scripted/test": model } };
  const ask = async () => {
    const agent = await initAgent(definition, { ...options, id: "weekly", payload: { who: "Ann" } });
    try {
      expect([agent.name, agent.id]).toEqual(["reporter", "weekly"]);
      await agent.session().skill("triage", { role: "careful" });
      return (await agent.session().history()).length;
    } finally {
      await agent.close();
    }
  };
  expect(await ask()).toBe(2);
  // The history is in SQLite below the repository: another process would go on with it, too.
  expect(existsSync(join(root, ".kit/sessions.db"))).toBe(true);
  expect(await ask()).toBe(4);
  expect(reported[0]).toContain("Reports weekly for Ann in eu.");
  expect(reported[0]).toContain("Be brief.");
  expect(reported[0]).toContain("Check twice.");
});

test.each([undefined, { model: "scripted/test" }, () => ({})])(
  "%j is not an agent to bring to life",
  async (given) => {
    const { root } = await repository();
    await expect(initAgent(given as never, { root, env: {} })).rejects.toMatchObject({
      code: "internal_error",
      hint: expect.stringContaining("createAgent({ … })"),
    });
  },
);

test("kit does not close a store that a program passes", async () => {
  const { root } = await repository();
  const store = new SqliteSessionStore({ file: ":memory:" });
  onTestFinished(() => store.close());
  const models = { "scripted/test": createScriptedModel(() => ({ text: "ok" })) };
  const options = { root, env: {}, models, store };
  const [one, other] = [await initAgent(createAgent({}), options), await initAgent(createAgent({}), options)];
  await one.session("one").prompt("x");
  await one.close();
  expect((await other.session("one").history()).length).toBe(2);
  expect((await other.session("other").prompt("y")).text).toBe("ok");
  await other.close();
  const service = await openService({ root, env: {}, models, store });
  await service.close();
  expect(store.list({ agent: "agent" })).toHaveLength(2);
});

test("openAgents opens the agent files of a repository, and onEvent gets all their events", async () => {
  const { root } = await repository();
  const received = new Set<string>();
  const app = await openAgents({
    root,
    env: {},
    models: { "scripted/test": createScriptedModel(() => ({ text: "ok" })) },
    onEvent: ({ agent, instance_id }) => received.add(`${agent} ${instance_id}`),
  });
  try {
    expect(app.agents().map(({ name, path }) => [name, path])).toEqual([["helper", "src/agents/helper.ts"]]);
    const { text } = await (await app.instance("helper", "1")).session().prompt("x");
    expect(text).toBe("ok");
    expect([...received]).toEqual(["helper 1"]);
  } finally {
    await app.close();
  }
});

test("work that would be lost with the process is refused: from the application, a workflow, or an agent's function", async () => {
  const helper = '{ kind: "kit.agent", describe: async () => ({}) }';
  await using folder = await createTemporaryRepository({
    "src/agents/helper.ts": `export default ${helper};\n`,
    "src/agents/lead.ts": `export default { kind: "kit.agent", describe: (ctx) => ctx.dispatch("helper", { id: "1", input: "x" }) };\n`,
    "src/workflows/hand.ts":
      'export const run = (ctx) => ctx.dispatch("helper", { id: "1", input: "x" }).catch(({ code, hint }) => ({ code, hint }));\n',
  });
  const app = await openAgents({ root: folder.root, env: {} });
  try {
    const refusal = { code: "unavailable", hint: expect.stringContaining("openService") };
    const whole: Partial<App> = app;
    await expect(whole.dispatch?.("helper", { id: "1", input: "x" })).rejects.toMatchObject(refusal);
    await expect(whole.dispatch?.("none", { id: "1", input: "x" })).rejects.toMatchObject({
      code: "agent_not_found",
    });
    expect((await app.run("hand")).result).toMatchObject(refusal);
    await expect(app.instance("lead", "1")).rejects.toMatchObject(refusal);
  } finally {
    await app.close();
  }
});

test("without a key and without a model in the configuration the offline guide answers", async () => {
  await using folder = await createTemporaryRepository({ "CLAUDE.md": "## Money\n\nAmounts are cents.\n" });
  const agent = await initAgent(createAgent({}), { root: folder.root, env: {} });
  try {
    const { text, model } = await agent.session().prompt("Which rules apply to src/pay.ts?");
    expect(model.id).toBe("offline/guide");
    expect(text).toContain("Amounts are cents.");
  } finally {
    await agent.close();
  }
});
