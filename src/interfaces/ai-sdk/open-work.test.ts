import { expect, test } from "vitest";
import { createApprovals } from "../../agents/approvals/approvals.ts";
import { defineTool } from "../../agents/define/tool.ts";
import type { Agent } from "../../agents/harness.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { OpenWork } from "./open-work.ts";

test.each([
  ["after it was asked", true],
  ["before it was asked", false],
])(
  "if a call leaves its question alone %s, a page still learns that the next call waits",
  async (_, isAsked) => {
    const schema = { type: "boolean" };
    const race = defineTool({
      name: "race",
      description: "Asks, and does not wait.",
      input: { type: "object" },
      execute: async (_input, { ask }) => {
        void ask({ message: "Sure?", schema });
        if (isAsked) await expect.poll(() => agent.approvals.list(), { interval: 5 }).toHaveLength(1);
        return "gone";
      },
    });
    const sign = defineTool({ ...race, name: "sign", needsApproval: true, execute: () => "signed" });
    const model = createScriptedModel([
      { toolCalls: [{ name: "race", input: {} }] },
      { toolCalls: [{ name: "sign", input: {} }] },
      { text: "Done." },
    ]);
    const events: KitEvent[] = [];
    const onEvent = (event: KitEvent): void => void events.push(event);
    const agent: Agent = createTestAgent(
      model,
      { tools: [race, sign], onEvent },
      { approvals: createApprovals() },
    );
    const answer = agent.session().prompt("Go.", { operationId: "op_race" });
    const isSigned = async (): Promise<string | undefined> =>
      (await agent.approvals.list()).find(({ tool }) => tool === "sign")?.approval_id;
    await expect.poll(isSigned, { interval: 5 }).toBeDefined();
    const id = await isSigned();
    const work = new OpenWork("op_race");
    for (const event of events) work.push(event);
    expect(work.awaited).toEqual([id]);
    await agent.approvals.decide(id ?? "", { approved: true });
    await answer;
    await agent.close();
  },
);
