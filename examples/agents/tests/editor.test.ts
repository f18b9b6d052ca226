import assert from "node:assert/strict";
import { test } from "node:test";
import { createApprovals } from "kit";
import { createScriptedModel, createTestAgent } from "kit/testing";
import editor from "../src/agents/editor.ts";

for (const approved of [true, false]) {
  test(`a notice waits for approval, and is ${approved ? "given" : "withdrawn"}`, async () => {
    const model = createScriptedModel([{ text: "Closed on Monday." }]);
    const agent = createTestAgent(model, editor.profile, { approvals: createApprovals() });
    const asked = new Promise<string>((resolve) => {
      agent.onEvent((event) => event.type === "approval_request" && resolve(event.approval_id));
    });
    const answer = agent.session().prompt("We are closed on Monday.");
    await agent.approvals.decide(await asked, { approved });
    assert.equal((await answer).text, approved ? "Closed on Monday." : "There is no notice today.");
  });
}
