import { expect, onTestFinished, test } from "vitest";
import { openProject } from "../../project/open-project.ts";
import { wallTest } from "../../sandboxes/host/wall/walled.suite.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { loadConfig } from "../config/load-config.ts";
import { changedCart } from "../verify/testing/changed-cart.ts";
import { openProjectService } from "./open-project-service.ts";
import type { ProjectService } from "./service.ts";
import { openWorkflows } from "./testing/open-workflows.ts";

test("names that begin with kit. belong to kit: a file of such a name is a problem, and the others work", async () => {
  const { service } = await openWorkflows({
    "src/workflows/kit/verify.ts": "export const run = () => 1;\n",
    "src/workflows/Kit.other.ts": "export const run = () => 2;\n",
    "src/workflows/kitchen.ts": "export const run = () => 3;\n",
  });
  expect(service.app.workflows().map(({ name }) => name)).toEqual(["kitchen"]);
  expect(service.app.problems()).toEqual(
    ["src/workflows/Kit.other.ts", "src/workflows/kit/verify.ts"].map((path) => ({
      path,
      message: expect.stringMatching(
        /^"[Kk]it\.\w+" cannot be a name: names that begin with "kit\." belong to kit's own workflows\. Rename/,
      ),
    })),
  );
  expect((await service.app.run("kitchen")).result).toBe(3);
});

test("an application without an open project has no workflow of kit's own", async () => {
  const { service } = await openWorkflows({});
  for (const name of ["kit.verify", "kit.nothing"])
    await expect(service.startRun(name, {})).rejects.toMatchObject({
      code: "workflow_not_found",
      hint: expect.stringContaining("kit's own workflows"),
    });
});

wallTest(
  "a workflow gets a verdict of kit.verify, from the next process if the first one ends meanwhile",
  async () => {
    const cart = await changedCart();
    const { root } = cart;
    await cart.write(
      "src/workflows/gate.ts",
      `export const run = (ctx) => ctx.run("kit.verify", { feature: "cart", task: "1" });\n`,
    );
    let opened: { service: ProjectService; close(): Promise<void> } | undefined;
    const open = async (): Promise<ProjectService> => {
      const loaded = await loadConfig({ cwd: root, environment: {} });
      const project = await openProject({ root, config: loaded.config, indexFile: ":memory:" });
      const store = new InMemorySessionStore();
      const service = await openProjectService({ project, loaded, store });
      opened = {
        service,
        async close() {
          await service.close({ timeoutMs: 0 });
          await project.close();
        },
      };
      return service;
    };
    onTestFinished(async () => {
      await opened?.close();
      await cart[Symbol.asyncDispose]();
    });
    const first = await open();
    expect(first.app.workflows().map(({ name }) => name)).toEqual(["gate"]);
    const { run_id } = await first.startRun("gate", {});
    const started = Promise.withResolvers<void>();
    const stop = first.app.onEvent((event) => event.type === "log" && started.resolve());
    await started.promise;
    stop();
    await opened?.close();
    const second = await open();
    expect(await second.engine.awaitRun(run_id)).toMatchObject({
      status: "completed",
      result: { end: "closed", isolated: true, criteria: [{ id: "cart#1.1" }] },
    });
  },
);
