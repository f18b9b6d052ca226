import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../agents/define/tool.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { defineWebhook } from "../../webhooks/define-webhook.ts";
import {
  defineWorkflow,
  type WorkflowOutput,
  type WorkflowPayload,
} from "../../workflows/define-workflow.ts";
import type { WorkflowContext } from "../../workflows/workflow-context.ts";
import { openWorkflows } from "./testing/open-workflows.ts";

const valibotOrder = v.object({ count: v.pipe(v.string(), v.transform(Number)) });
/** The same schema in each library: `count` comes as a text, and is a number for kit's user. */
const order = {
  zod: z.object({ count: z.string().transform(Number) }),
  valibot: toStandardJsonSchema(valibotOrder),
  arktype: type({ count: "string.numeric.parse" }),
};
const url = (name: string): string => JSON.stringify(import.meta.resolve(name));
/** How a file of a project writes it. */
const source = {
  zod: `import { z } from ${url("zod")};
const order = z.object({ count: z.string().transform(Number) });`,
  valibot: `import * as v from ${url("valibot")};
const order = v.object({ count: v.pipe(v.string(), v.transform(Number)) });`,
  arktype: `import { type } from ${url("arktype")};
const order = type({ count: "string.numeric.parse" });`,
};

describe.each(["zod", "valibot", "arktype"] as const)("a schema of %s", (library) => {
  test("checks a tool's arguments, which the model sees as JSON Schema, and a result", async () => {
    const given: unknown[] = [];
    const tool = defineTool<{ count: number }>({
      name: "pay",
      description: "",
      input: order[library],
      execute: (input) => {
        given.push(input);
      },
    });
    const model = createScriptedModel([
      { toolCalls: [{ name: "pay", input: { count: 5 } }] },
      { toolCalls: [{ name: "pay", input: { count: "5" } }] },
      { text: '{"count": 7}' },
      { text: '{"count": "7"}' },
    ]);
    const session = createTestAgent(model, { tools: [tool] }).session();
    const { result } = await session.prompt<{ count: number }>("Pay.", { result: order[library] });
    expect(result).toEqual({ count: 7 });
    expect(given).toEqual([{ count: 5 }]);
    const pay = model.calls[0]?.tools?.find(({ name }) => name === "pay");
    expect(pay).toMatchObject({
      inputSchema: { type: "object", required: ["count"], properties: { count: { type: "string" } } },
    });
  });

  test("checks a run's payload, its result and a signal that it waits for", async () => {
    const { service } = await openWorkflows({
      "src/workflows/buy.ts": `import { defineWorkflow } from "kit";
${source[library]}
export default defineWorkflow({
  payload: order,
  result: order,
  run: async (ctx) => {
    const more = await ctx.waitFor("more", { schema: order });
    return { count: String(ctx.payload.count + more.count) };
  },
});`,
    });
    await expect(service.startRun("buy", { count: 1 })).rejects.toMatchObject({
      code: "invalid_request",
      meta: { issues: [{ path: "payload.count" }] },
    });
    const { run_id } = await service.startRun("buy", { count: "1" });
    await expect.poll(async () => (await service.engine.getRun(run_id))?.status).toBe("waiting");
    await expect(
      service.engine.signal(run_id, { name: "more", payload: { count: 2 } }),
    ).rejects.toMatchObject({
      code: "invalid_request",
      message: expect.stringContaining("count"),
    });
    await service.engine.signal(run_id, { name: "more", payload: { count: "2" } });
    expect(await service.engine.awaitRun(run_id)).toMatchObject({
      status: "completed",
      result: { count: 3 },
    });
  });
});

test("after a restart, a run gets a signal that only its library can check: patterns with a look-ahead", async () => {
  const { service, restart } = await openWorkflows({
    "src/workflows/unlock.ts": `import { z } from ${url("zod")};
const schema = z.object({ pin: z.string().regex(/^(?=.*\\d).+$/) });
export const run = (ctx) => ctx.waitFor("pin", { schema });`,
  });
  const { run_id } = await service.startRun("unlock", {});
  await expect.poll(async () => (await service.engine.getRun(run_id))?.status).toBe("waiting");
  const { engine } = await restart();
  await expect(engine.signal(run_id, { name: "pin", payload: { pin: 1 } })).rejects.toMatchObject({
    code: "invalid_request",
  });
  await engine.signal(run_id, { name: "pin", payload: { pin: "a1" } });
  expect(await engine.awaitRun(run_id)).toMatchObject({ status: "completed", result: { pin: "a1" } });
});

test("the types of tools, results, workflows, waits and webhooks are those of the library's schema", () => {
  type Order = { count: number };
  const tool = { name: "pay", description: "" };
  const expectOrder = (input: Order): string => `${input.count}`;
  const execute = (input: Order): string => {
    expectTypeOf(input).toEqualTypeOf<Order>();
    return expectOrder(input);
  };
  defineTool({ ...tool, input: order.zod, execute: (input) => execute(input) });
  defineTool({ ...tool, input: order.valibot, execute: (input) => execute(input) });
  defineTool({ ...tool, input: order.arktype, execute: (input) => execute(input) });
  // @ts-expect-error `total` is not a field of the arguments
  defineTool({ ...tool, input: order.arktype, execute: ({ total }) => String(total) });
  const workflows = {
    zod: defineWorkflow({ payload: order.zod, result: order.zod, run: async () => ({ count: "1" }) }),
    valibot: defineWorkflow({
      payload: valibotOrder,
      result: valibotOrder,
      run: async () => ({ count: "1" }),
    }),
    arktype: defineWorkflow({
      payload: order.arktype,
      result: order.arktype,
      run: async () => ({ count: "1" }),
    }),
  };
  expectTypeOf<WorkflowPayload<typeof workflows.zod>>().toEqualTypeOf<{ count: string }>();
  expectTypeOf<WorkflowPayload<typeof workflows.valibot>>().toEqualTypeOf<{ count: string }>();
  expectTypeOf<WorkflowPayload<typeof workflows.arktype>>().toEqualTypeOf<{ count: string }>();
  expectTypeOf<WorkflowOutput<typeof workflows.valibot>>().toEqualTypeOf<Order>();
  expectTypeOf<WorkflowOutput<typeof workflows.arktype>>().toEqualTypeOf<Order>();
  const wait = async (ctx: WorkflowContext) => {
    expectTypeOf(await ctx.waitFor("more", { schema: valibotOrder })).toEqualTypeOf<Order>();
    expectTypeOf(await ctx.waitFor("more", { schema: order.arktype })).toEqualTypeOf<Order>();
  };
  const webhook = { scheme: "github", secret: () => "s" } as const;
  defineWebhook({ ...webhook, payload: order.zod, handle: ({ payload }) => execute(payload) });
  defineWebhook({ ...webhook, payload: valibotOrder, handle: ({ payload }) => execute(payload) });
  defineWebhook({ ...webhook, payload: order.arktype, handle: ({ payload }) => execute(payload) });
  defineWebhook({ ...webhook, handle: ({ payload }) => expectTypeOf(payload).toEqualTypeOf<unknown>() });
  expect(wait).toBeTypeOf("function");
});

test("a schema of valibot without a converter is not an input of a tool, and the error says what to do", async () => {
  const tool = defineTool({ name: "pay", description: "", input: valibotOrder, execute: () => "" });
  const session = createTestAgent(createScriptedModel([]), { tools: [tool] }).session();
  await expect(session.prompt("Pay.")).rejects.toMatchObject({
    code: "invalid_request",
    hint: expect.stringContaining("toStandardJsonSchema of @valibot/to-json-schema"),
  });
});
