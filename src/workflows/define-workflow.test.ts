import { expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { defineWorkflow, type WorkflowOutput, type WorkflowPayload } from "./define-workflow.ts";
import type { WorkflowContext } from "./workflow-context.ts";

const release = defineWorkflow({
  payload: z.object({ version: z.string(), dry: z.string().transform((text) => text === "yes") }),
  result: z.object({ published: z.boolean() }),
  schedule: { cron: "0 9 * * 1", payload: { version: "nightly", dry: "no" } },
  async run(ctx) {
    expectTypeOf(ctx.payload).toEqualTypeOf<{ version: string; dry: boolean }>();
    return { published: ctx.payload.dry };
  },
});
const loose = defineWorkflow({ run: async (ctx) => ({ id: ctx.id }) });

test("a workflow's payload and result are typed by its schemas, for its code and for its callers", () => {
  expectTypeOf<WorkflowPayload<typeof release>>().toEqualTypeOf<{ version: string; dry: string }>();
  expectTypeOf<WorkflowOutput<typeof release>>().toEqualTypeOf<{ published: boolean }>();
  expectTypeOf<WorkflowOutput<typeof loose>>().toEqualTypeOf<{ id: string }>();
  expectTypeOf<WorkflowPayload<{ default: typeof release }>>().toEqualTypeOf<{
    version: string;
    dry: string;
  }>();
  type Loose = { payload: typeof schema; run(ctx: WorkflowContext): Promise<number> };
  const schema = z.object({ text: z.string() });
  expectTypeOf<WorkflowPayload<Loose>>().toEqualTypeOf<{ text: string }>();
  expectTypeOf<WorkflowOutput<Loose>>().toEqualTypeOf<number>();
});

test("a value that does not fit the schemas is an error of the type checker", () => {
  const number = z.object({ count: z.number() });
  defineWorkflow({
    payload: number,
    // @ts-expect-error the payload of a schedule is that of the workflow
    schedule: { cron: "0 9 * * 1", payload: { count: "one" } },
    // @ts-expect-error the payload has no such field
    run: async (ctx) => ctx.payload.total,
  });
  defineWorkflow({
    result: number,
    // @ts-expect-error the count is not text
    run: async () => ({ count: "one" }),
  });
  defineWorkflow({
    payload: number,
    result: number,
    // @ts-expect-error a step returns no count
    run: (ctx) => ctx.step("count", () => ctx.payload.count),
  });
  const checked = defineWorkflow({ result: { type: "object" }, run: () => ({ count: 1 }) });
  expectTypeOf<WorkflowOutput<typeof checked>>().toEqualTypeOf<{ count: number }>();
  const converted = defineWorkflow({ result: z.string().transform(Number), run: () => "1" });
  expectTypeOf<WorkflowOutput<typeof converted>>().toEqualTypeOf<number>();
  const useContext = async (ctx: WorkflowContext) => {
    // @ts-expect-error the version is a text
    await ctx.run(release, { version: 1, dry: "no" });
    // @ts-expect-error a typo
    await ctx.startRun(release, { verzion: "1", dry: "no" });
    expectTypeOf(await ctx.run(release, { version: "1", dry: "no" })).toEqualTypeOf<{ published: boolean }>();
    const run = await ctx.startRun(release, { version: "1", dry: "no" });
    expectTypeOf(await run.result()).toEqualTypeOf<{ published: boolean }>();
    expectTypeOf(await ctx.run("release", {})).toEqualTypeOf<unknown>();
    expectTypeOf(await ctx.run(loose)).toEqualTypeOf<{ id: string }>();
    expectTypeOf(await (await ctx.startRun(loose)).result()).toEqualTypeOf<{ id: string }>();
    // @ts-expect-error the payload has required fields
    await ctx.run(release);
    // @ts-expect-error the payload has required fields
    await ctx.startRun(release);
    const schema = z.object({ approved: z.boolean() });
    expectTypeOf(await ctx.waitFor("word", { schema })).toEqualTypeOf<{ approved: boolean }>();
    expectTypeOf(await ctx.waitFor("word", { schema, timeoutMs: 5 })).toEqualTypeOf<
      { approved: boolean } | undefined
    >();
    expectTypeOf(await ctx.waitFor("word")).toEqualTypeOf<unknown>();
  };
  expect(useContext).toBeTypeOf("function");
});

test.each([
  [{ run: "later" }, "A workflow has no `run` function"],
  [
    { run: (): number => 1, shedule: "* * * * *" },
    "`shedule` is not a field of a workflow; did you mean schedule?",
  ],
  [{ run: (): number => 1, payload: "text" }, "`payload` must be a schema"],
  [{ run: (): number => 1, result: null }, "`result` must be a schema"],
  [
    { run: (): number => 1, payload: { properties: { at: { type: "date" } } } },
    "`payload` is not a valid JSON Schema: `properties.at.type` must be one of",
  ],
  [{ run: (): number => 1, result: { type: "objekt" } }, /, not "objekt"; did you mean object\?$/],
  [{ run: (): number => 1, result: { items: 1 } }, "`result` is not a valid JSON Schema: `items` must be"],
  [
    { run: (): number => 1, payload: { text: z.string() } },
    "not an object of schemas; wrap it: z.object({ … })",
  ],
])("plain JavaScript is told what is wrong with %o", (definition, message) => {
  expect(() => defineWorkflow(definition as never)).toThrow(message);
});
