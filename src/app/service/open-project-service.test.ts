import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openProject } from "../../project/open-project.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { loadConfig } from "../config/load-config.ts";
import { openProjectService } from "./open-project-service.ts";
import { openService } from "./open-service.ts";
import type { ProjectService } from "./service.ts";

test("a project's service stores accepted work as configured, with the configured limits", async () => {
  const repository = await createTemporaryRepository({
    "kit.toml": `[agent]
model = "scripted/test"
max_waiting = 2
[engine]
folder = "state/engine"
concurrency = 1
`,
    "src/workflows/wait.ts": "export const run = (ctx) => ctx.waitFor('word');\n",
  });
  const { root } = repository;
  const opened: { service: ProjectService; close(): Promise<void> }[] = [];
  const open = async (delayMs?: number): Promise<ProjectService> => {
    const loaded = await loadConfig({ cwd: root, environment: {} });
    const project = await openProject({ root, config: loaded.config });
    const model = createScriptedModel(() => ({
      text: "Hello.",
      ...(delayMs === undefined ? {} : { delayMs }),
    }));
    const service = await openProjectService({ project, loaded, models: { "scripted/test": model } });
    opened.push({
      service,
      async close() {
        await service.close({ timeoutMs: 0 });
        await project.close();
      },
    });
    return service;
  };
  onTestFinished(async () => {
    await opened.at(-1)?.close();
    await repository[Symbol.asyncDispose]();
  });
  const key = { agent: "default", instance_id: "1", session: "default" };
  const first = await open(60_000);
  const running = await first.dispatch(key, "running");
  // An input that the service works on no longer counts as waiting.
  for await (const { type } of first.events(key, {})) if (type === "turn_request") break;
  const waiting = await Promise.all([first.dispatch(key, "one"), first.dispatch(key, "two")]);
  await expect(first.dispatch(key, "three")).rejects.toMatchObject({ code: "too_many_requests" });
  const { run_id } = await first.startRun("wait", {});
  await opened.at(-1)?.close();
  expect(existsSync(join(root, "state/engine/engine.db"))).toBe(true);
  expect(existsSync(join(root, ".kit/engine"))).toBe(false);

  const second = await open();
  for (const { dispatch_id } of [running, ...waiting]) {
    expect(await second.engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed" });
  }
  await second.engine.signal(run_id, { name: "word", payload: "go" });
  expect(await second.engine.awaitRun(run_id)).toMatchObject({ status: "completed", result: "go" });
});

test("a program can choose where the engine stores accepted work: in memory or in a folder", async () => {
  const repository = await createTemporaryRepository({ "kit.toml": '[agent]\nmodel = "scripted/test"\n' });
  onTestFinished(() => repository[Symbol.asyncDispose]());
  const { root } = repository;
  const models = { "scripted/test": createScriptedModel(() => ({ text: "Hello." })) };
  for (const [engine, isDurable] of [
    ["memory", false],
    ["state/jobs", true],
  ] as const) {
    const service = await openService({ root, env: {}, models, engine });
    const order: string[] = [];
    const key = { agent: "default", instance_id: engine === "memory" ? "m" : "d", session: "default" };
    const { dispatch_id } = await service.dispatch(key, "first");
    const reply = await service.prompt(
      key,
      { message: "second" },
      { onStart: () => order.push("started"), onEvent: ({ type }) => order.push(type) },
    );
    expect(reply.text).toBe("Hello.");
    // Its turn came after what was accepted before.
    expect(await service.engine.getDispatch(dispatch_id)).toMatchObject({ status: "completed" });
    expect(order[0]).toBe("started");
    expect(service.engine.capabilities.durable).toBe(isDurable);
    await service.close();
    // A second close waits for the first.
    await service.app.close();
  }
  expect([existsSync(join(root, ".kit/engine")), existsSync(join(root, "state/jobs/engine.db"))]).toEqual([
    false,
    true,
  ]);
});
