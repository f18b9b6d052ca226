import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { createTestService } from "../../testing/test-service.ts";

// As `createAgent` and `defineTool` of kit make them.
const agent = `const pay = {
  name: "pay",
  description: "Pays.",
  input: { type: "object", properties: {} },
  needsApproval: true,
  execute: async () => "Paid.",
};
export default { kind: "kit.agent", describe: async () => ({ instructions: "Pay.", tools: [pay] }) };
`;
const workflow = `import payer from "../agents/payer.ts";
export async function run(ctx) {
  const { text } = await (await ctx.init(payer)).session().prompt("Pay.");
  return text;
}
`;

test("calls that wait for approval do not block other work", async () => {
  const repository = await createTemporaryRepository({
    "src/agents/payer.ts": agent,
    "src/workflows/payday.ts": workflow,
  });
  const service = await createTestService(
    {
      root: repository.root,
      model: createScriptedModel(({ prompt }) => {
        const last = prompt.at(-1);
        if (last?.role === "tool") return { text: "Done." };
        return JSON.stringify(last).includes("Pay.")
          ? { toolCalls: [{ name: "pay", id: "call_1", input: {} }] }
          : { text: "Hello." };
      }),
    },
    { running: 2 },
  );
  onTestFinished(async () => {
    await service.close();
    await repository[Symbol.asyncDispose]();
  });
  const approvalEvents = new EventTarget();
  service.app.onEvent(({ type }) => {
    if (type === "approval_request") approvalEvents.dispatchEvent(new Event("asked"));
  });
  const target = (instance_id: string) => ({ agent: "payer", instance_id, session: "default" });
  const paid: Promise<unknown>[] = [];
  const ask = async (work: () => Promise<unknown>): Promise<void> => {
    const received = once(approvalEvents, "asked");
    paid.push(work());
    await received;
  };
  for (const id of ["1", "2"]) await ask(() => service.prompt(target(id), { message: "Pay." }));
  await ask(async () => {
    const { dispatch_id } = await service.dispatch(target("3"), "Pay.");
    return (await service.engine.awaitDispatch(dispatch_id))?.result;
  });
  await ask(async () => {
    const { run_id } = await service.startRun("payday", {});
    return { text: (await service.engine.awaitRun(run_id))?.result };
  });
  expect(await service.prompt(target("4"), { message: "Hello?" })).toMatchObject({ text: "Hello." });
  const waiting = await service.approvals.list();
  expect(waiting).toHaveLength(4);
  for (const { approval_id } of waiting) await service.approvals.decide(approval_id, { approved: true });
  expect(await Promise.all(paid)).toMatchObject(Array(4).fill({ text: "Done." }));
});
