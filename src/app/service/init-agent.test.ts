import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, expectTypeOf, onTestFinished, test } from "vitest";
import { z } from "zod";
import { createAgent } from "../../agents/define/create-agent.ts";
import { SqliteSessionStore } from "../../stores/sqlite/sqlite-store.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTemporaryRepository, type TemporaryRepository } from "../../testing/temporary-repository.ts";
import { defineWorkflow } from "../../workflows/define-workflow.ts";
import type { Agents, App } from "./app.ts";
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

test("initAgent names a misspelled field in its message, in both forms of an agent", async () => {
  const { root } = await repository();
  const profile = { allowedCommand: ["git"] } as never;
  for (const definition of [createAgent(profile), createAgent(() => profile)])
    await expect(initAgent(definition, { root, env: {} })).rejects.toMatchObject({
      code: "internal_error",
      message: expect.stringContaining(
        "`allowedCommand` is not a field of a profile; did you mean allowedCommands?",
      ),
    });
});

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
  onTestFinished(() => app.close());
  expect(app.agents().map(({ name, path }) => [name, path])).toEqual([["helper", "src/agents/helper.ts"]]);
  const { text } = await (await app.instance("helper", "1")).session().prompt("x");
  expect(text).toBe("ok");
  expect([...received]).toEqual(["helper 1"]);
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
  onTestFinished(() => app.close());
  const refusal = { code: "unavailable", hint: expect.stringContaining("openService") };
  const whole: Partial<App> = app;
  await expect(whole.dispatch?.("helper", { id: "1", input: "x" })).rejects.toMatchObject(refusal);
  await expect(whole.dispatch?.("none", { id: "1", input: "x" })).rejects.toMatchObject({
    code: "agent_not_found",
  });
  expect((await app.run("hand")).result).toMatchObject(refusal);
  await expect(app.instance("lead", "1")).rejects.toMatchObject(refusal);
});

test("without a key and without a model in the configuration the offline guide answers", async () => {
  await using folder = await createTemporaryRepository({ "CLAUDE.md": "## Money\n\nAmounts are cents.\n" });
  const agent = await initAgent(createAgent({}), { root: folder.root, env: {} });
  onTestFinished(() => agent.close());
  const { text, model } = await agent.session().prompt("Which rules apply to src/pay.ts?");
  expect(model.id).toBe("offline/guide");
  expect(text).toContain("Amounts are cents.");
});

test("answers of an agent with an output, and results of a workflow, have their types in a program", async () => {
  const model = createScriptedModel([{ text: '{"cents": 3}' }, { text: '{"cents": 4}' }, { text: '"five"' }]);
  const output = z.object({ cents: z.number() });
  const priced = createAgent(async () => ({ model, output }));
  const agent = await initAgent(priced, { root: (await repository()).root, env: {} });
  onTestFinished(() => agent.close());
  const session = agent.session();
  const { result } = await session.prompt("What does it cost?", { modelSettings: { temperature: 0 } });
  expectTypeOf(result).toEqualTypeOf<{ cents: number }>();
  expect(result.cents).toBe(3);
  const stream = session.stream("And now?");
  for await (const { cents } of stream.partialResults())
    expectTypeOf(cents).toEqualTypeOf<number | undefined>();
  expect((await stream.result).result.cents).toBe(4);
  expectTypeOf(await agent.sessions.get("default")).toEqualTypeOf<typeof session | undefined>();
  const { result: text } = await session.prompt("As JSON?", { result: z.literal("five") });
  expectTypeOf(text).toEqualTypeOf<"five">();

  const pay = defineWorkflow({
    payload: z.object({ cents: z.number() }),
    async run(ctx) {
      const payer = await ctx.init(priced);
      return (await payer.session().prompt("Pay.")).result.cents;
    },
  });
  const calls = [
    async (app: Agents) => expectTypeOf((await app.run(pay, { payload: { cents: 1 } })).result).toBeNumber(),
    async (app: Agents) => expectTypeOf(await app.instance(priced, "1")).toEqualTypeOf(agent),
    // @ts-expect-error: cents is a number.
    (app: Agents) => app.run(pay, { payload: { cents: "1" } }),
    // @ts-expect-error: the payload is needed.
    (app: Agents) => app.run(pay),
  ];
  expect(calls).toHaveLength(4);
});

test("a program names an agent and a workflow by the default exports of their files, also after a reload", async () => {
  const { root, write } = await repository();
  await write(
    "src/workflows/pay.ts",
    'export default { kind: "kit.workflow", run: async (ctx) => ctx.payload };\n',
  );
  const app = await openAgents({ root, env: {} });
  onTestFinished(() => app.close());
  const exported = async (path: string) => (await import(pathToFileURL(join(root, path)).href)).default;
  const [helper, pay] = [await exported("src/agents/helper.ts"), await exported("src/workflows/pay.ts")];
  const check = async () => {
    expect(await app.instance(helper, "7")).toMatchObject({ name: "helper", id: "7" });
    expect(await app.run(pay, { payload: { cents: 1 } })).toMatchObject({ result: { cents: 1 } });
  };
  await check();
  await write(
    "src/agents/helper.ts",
    'export default { kind: "kit.agent", describe: async () => ({ cwd: "." }) };\n',
  );
  await app.reload();
  await check();
  await expect(app.instance(createAgent({}), "7")).rejects.toMatchObject({ code: "agent_not_found" });
  await expect(app.run(defineWorkflow({ run: async () => 1 }))).rejects.toMatchObject({
    code: "workflow_not_found",
  });
});

test("the signal of an agent's function fires when the instance is closed, also in a copy and where it is read later", async () => {
  const { root } = await repository();
  const read: AbortSignal[] = [];
  const contexts: { readonly signal: AbortSignal }[] = [];
  const reads = createAgent((context) => {
    read.push({ ...context }.signal, context.signal);
    return {};
  });
  const readsLater = createAgent((context) => {
    contexts.push(context);
    return {};
  });
  for (const definition of [reads, readsLater]) {
    const agent = await initAgent(definition, { root, env: {} });
    expect(read.map(({ aborted }) => aborted)).toEqual(definition === reads ? [false, false] : [true, true]);
    await agent.close();
  }
  expect(read.map(({ aborted }) => aborted)).toEqual([true, true]);
  expect(contexts.map(({ signal }) => signal.aborted)).toEqual([true]);
});

test("instances share the profile of a function while it returns the same one, and have their own where it does not", async () => {
  const { root } = await repository();
  const definition = createAgent(({ payload }) => ({
    instructions: `For ${String(payload.who)}.`,
    compaction: { enabled: false },
  }));
  const app = await openAgents({ root, env: {} });
  onTestFinished(() => app.close());
  const profileFor = async (id: string, name: string) =>
    (await app.init(definition, { id, payload: { who: name } })).profile;
  const first = await profileFor("1", "Ann");
  expect(await profileFor("2", "Ann")).toBe(first);
  expect((await profileFor("3", "Bob")).instructions).toBe("For Bob.");
  expect((await profileFor("4", "Ann")).instructions).toBe("For Ann.");
});
