import { expect, test } from "vitest";
import { eventsOf, openWorkflows, waiting } from "./testing/open-workflows.ts";

test("an error of a workflow ends its run at once, however retryable it is", async () => {
  const { service } = await openWorkflows(
    {
      "src/workflows/fail.ts": `import writer from "../agents/writer.ts";
export const run = async (ctx) => (await ctx.init(writer)).session().prompt("x");`,
    },
    () => {
      throw new Error("The model is broken.");
    },
  );
  const { run_id } = await service.startRun("fail", {});
  expect(await service.engine.awaitRun(run_id)).toMatchObject({
    status: "failed",
    error: { type: "model_error" },
  });
  expect((await eventsOf(service, run_id)).at(-1)).toMatchObject({ type: "run_end", is_error: true });
});

test("a stream reports a failed run, also if only the last step failed", async () => {
  const { service } = await openWorkflows({
    "src/workflows/odd.ts": "export const run = () => ({ share: Number.NaN });\n",
  });
  const { run_id } = await service.startRun("odd", {});
  expect((await service.engine.awaitRun(run_id))?.error).toEqual({
    type: "internal_error",
    message: "The result of the workflow is not JSON: share is NaN.",
  });
  expect((await eventsOf(service, run_id)).at(-1)).toMatchObject({ type: "run_end", is_error: true });
});

test("invalid answers throw in the workflow, also in a replay", async () => {
  const { service, restart } = await openWorkflows(
    {
      "src/workflows/ask.ts": `import writer from "../agents/writer.ts";
const never = {
  "~standard": { version: 1, vendor: "test", validate: () => ({ issues: [{ message: "no number" }] }) },
};
export async function run(ctx) {
  const agent = await ctx.init(writer);
  const seen = await agent.session().prompt("How many?", { result: never }).catch((error) => error);
  ctx.log.info("waiting");
  await ctx.waitFor("go");
  return { code: seen.code, hint: seen.hint, attempts: seen.attempts };
}`,
    },
    () => ({ text: '{"many":true}' }),
  );
  const runs = await Promise.all([service.startRun("ask", {}), service.startRun("ask", {})]);
  const [first, second] = runs.map(({ run_id }) => run_id);
  if (first === undefined || second === undefined) throw new Error("Two runs were started.");
  for (const id of [first, second]) await waiting(service, id);
  await service.engine.signal(first, { name: "go" });
  const live = await service.engine.awaitRun(first);
  const attempt = { text: '{"many":true}', issues: ["no number"] };
  expect(live?.result).toEqual({ code: "typed_output", hint: "no number", attempts: Array(4).fill(attempt) });
  const next = await restart();
  await next.engine.signal(second, { name: "go" });
  expect((await next.engine.awaitRun(second))?.result).toEqual(live?.result);
});
