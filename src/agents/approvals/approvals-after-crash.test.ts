import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { toProfile } from "../../app/config/agent-config.ts";
import { KitError } from "../../base/kit-error.ts";
import type { AllowRule } from "../../protocol/approval.ts";
import { createScriptedModel, type Script } from "../../testing/scripted-model.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { createTestRuntime } from "../../testing/test-runtime.ts";
import { defineTool } from "../define/tool.ts";
import { createHarness } from "../harness.ts";
import type { PromptResult } from "../operations/options.ts";
import { type Doom, type DoomedProcess, openDoomed } from "../session/crash.suite.ts";
import { type Approvals, createApprovals } from "./approvals.ts";
import { type Opened, open, type Place, payThenSay, resultOf } from "./paying-agent.suite.ts";

const folder = testFolder(afterAll);

interface Life {
  readonly doom: Doom;
  readonly ran: string[];
  readonly tool?: Place["tool"];
  readonly profile?: Place["profile"];
}

interface OpenedOn extends Opened {
  readonly doomed: DoomedProcess;
  ask(): Promise<PromptResult>;
}

/** Opens the agent on a database file, in a process that crashes at `doom`. */
const operationId = "op_pay";

function openOn(file: string, { doom, ran, tool = {}, profile = {} }: Life): OpenedOn {
  const doomed = openDoomed(join(folder, file), doom);
  const opened = open({ over: { store: doomed.store }, ran, tool, profile, operationId });
  return { ...opened, doomed, ask: () => opened.agent.session().prompt("pay", { operationId }) };
}

// Appends: 1 the prompt, 2 the call, 3 the request, 4 the decision, 5 the result, 6 the answer.
test("a call that waited for approval when the process died requests it again under the same id", async () => {
  const ran: string[] = [];
  const first = openOn("waiting.db", { doom: { at: 4, when: "before" }, ran });
  const { approval_id } = await first.waiting();
  await first.doomed.store.close();
  const second = openOn("waiting.db", { doom: { at: 0, when: "after" }, ran });
  const { answer, approval_id: again } = await second.waiting();
  expect(again).toBe(approval_id);
  await second.agent.approvals.decide(approval_id, { approved: true });
  expect((await answer).text).toBe("Done.");
  expect(ran).toEqual(["pay 5"]);
});

test.each([
  ["approved", true, "outcome is unknown"],
  ["denied", false, "The call was denied"],
])(
  "a call that was %s when the process died does not request approval again",
  async (name, approved, text) => {
    const ran: string[] = [];
    const first = openOn(`${name}.db`, { doom: { at: 4, when: "after" }, ran });
    await first.decided({ approved });
    await first.doomed.end;
    const second = openOn(`${name}.db`, { doom: { at: 0, when: "after" }, ran });
    const { messages } = await second.ask();
    expect(second.events.map((event) => event.type)).not.toContain("approval_request");
    expect(JSON.stringify(resultOf(messages).content)).toContain(text);
    expect(ran).toEqual([]);
  },
);

test("an approved idempotent call runs after a crash without a second request", async () => {
  const ran: string[] = [];
  const tool: Place["tool"] = {
    idempotent: true,
    execute: (_input, { approved }) => `${ran.push(`approved: ${approved}`)}`,
  };
  const first = openOn("twice.db", { doom: { at: 4, when: "after" }, ran, tool });
  await first.decided({ approved: true });
  await first.doomed.end;
  const second = openOn("twice.db", { doom: { at: 0, when: "after" }, ran, tool });
  expect((await second.ask()).text).toBe("Done.");
  expect(second.events.map((event) => event.type)).not.toContain("approval_request");
  expect(ran).toEqual(["approved: true"]);
});

test.each([
  ["idempotent", { idempotent: true }],
  ["other", {}],
])(
  "an %s call whose approval was not yet requested when the process died waits for approval before it runs",
  async (name, tool) => {
    const ran: string[] = [];
    const file = `unasked ${name}.db`;
    const first = openOn(file, { doom: { at: 3, when: "before" }, ran, tool });
    void first.ask();
    await first.doomed.end;
    const second = openOn(file, { doom: { at: 0, when: "after" }, ran, tool });
    const { answer, approval_id } = await second.waiting();
    expect(ran).toEqual([]);
    await second.agent.approvals.decide(approval_id, { approved: true });
    expect((await answer).text).toBe("Done.");
    expect(ran).toEqual(["pay 5"]);
  },
);

test("a call whose tool asks by a function that may answer otherwise is not repeated if the process died before a request", async () => {
  const ran: string[] = [];
  const askingIf = (answer: boolean): Place["tool"] => ({ needsApproval: () => answer });
  const first = openOn("function.db", { doom: { at: 3, when: "before" }, ran, tool: askingIf(false) });
  void first.ask();
  await first.doomed.end;
  const second = openOn("function.db", { doom: { at: 0, when: "after" }, ran, tool: askingIf(true) });
  const { messages } = await second.ask();
  expect(JSON.stringify(resultOf(messages).content)).toContain("outcome is unknown");
  expect(ran).toEqual(["pay 5"]);
});

test("a call that a rule of the configuration let run is not repeated after the process died, also if the rule is gone", async () => {
  const ran: string[] = [];
  const pay = defineTool<{ readonly amount?: number }>({
    name: "pay",
    description: "Pays.",
    input: { type: "object" },
    execute: ({ amount }) => `${ran.push(`pay ${amount}`)}`,
  });
  const openAllowing = (allow: readonly AllowRule[], doom: Doom) => {
    const doomed = openDoomed(join(folder, "waived.db"), doom);
    const approvals = { tools: ["pay"], allow: [...allow] };
    const runtime = createTestRuntime(createScriptedModel(payThenSay), { store: doomed.store });
    const profile = { ...toProfile({ approvals }), tools: [pay] };
    const session = createHarness({ name: "tester", id: "1" }, profile, runtime).session();
    return { doomed, ask: () => session.prompt("pay", { operationId }) };
  };
  // Appends: 1 the prompt, 2 the call, 3 that it starts, 4 its result.
  const first = openAllowing([{ tool: "pay" }], { at: 4, when: "before" });
  void first.ask();
  await first.doomed.end;
  const second = openAllowing([], { at: 0, when: "after" });
  const { messages } = await second.ask();
  expect(JSON.stringify(resultOf(messages).content)).toContain("outcome is unknown");
  expect(ran).toEqual(["pay 5"]);
});

const paying = (amount: number): Place["profile"] => ({
  hooks: { beforeTool: () => ({ args: { amount, currency: "EUR" } }) },
});
const payingInOtherOrder: Place["profile"] = {
  hooks: { beforeTool: () => ({ args: { currency: "EUR", amount: 7 } }) },
};

test("a call whose arguments a hook changed is approved as changed, also after the process died", async () => {
  const ran: string[] = [];
  const first = openOn("changed.db", { doom: { at: 4, when: "before" }, ran, profile: paying(7) });
  const { approval_id, args } = await first.waiting();
  expect(args).toEqual({ amount: 7, currency: "EUR" });
  await first.doomed.store.close();
  const second = openOn("changed.db", { doom: { at: 0, when: "after" }, ran, profile: payingInOtherOrder });
  const { answer, approval_id: again } = await second.waiting();
  expect(again).toBe(approval_id);
  await second.agent.approvals.decide(approval_id, { approved: true });
  expect((await answer).text).toBe("Done.");
  expect(ran).toEqual(["pay 7"]);
});

test.each([
  ["other arguments", paying(7), paying(900)],
  ["arguments changed that it did not change before", {}, paying(900)],
  ["the model's arguments again", paying(7), {}],
])("a waiting call does not run if, on resume, its hook leaves %s", async (name, before, after) => {
  const ran: string[] = [];
  const file = `waiting ${name}.db`;
  const first = openOn(file, { doom: { at: 4, when: "before" }, ran, profile: before ?? {} });
  const { approval_id } = await first.waiting();
  await first.doomed.store.close();
  const second = openOn(file, { doom: { at: 0, when: "after" }, ran, profile: after ?? {} });
  const { messages } = await second.ask();
  expect(JSON.stringify(resultOf(messages).content)).toContain("approval was requested for other arguments");
  expect(second.events).toContainEqual(
    expect.objectContaining({ type: "approval", approval_id, approved: false }),
  );
  expect(await second.agent.approvals.list()).toEqual([]);
  expect(ran).toEqual([]);
});

test.each([
  ["other arguments", paying(900), []],
  ["the same arguments", payingInOtherOrder, ["pay 7"]],
])(
  "an approved idempotent call with a hook that leaves %s on resume runs only with the approved arguments",
  async (name, after, expected) => {
    const ran: string[] = [];
    const file = `approved ${name}.db`;
    const tool: Place["tool"] = { idempotent: true };
    const first = openOn(file, { doom: { at: 4, when: "after" }, ran: [], tool, profile: paying(7) ?? {} });
    await first.decided({ approved: true });
    await first.doomed.end;
    const second = openOn(file, { doom: { at: 0, when: "after" }, ran, tool, profile: after ?? {} });
    const { messages } = await second.ask();
    const text = JSON.stringify(resultOf(messages).content);
    expect(text.includes("for other arguments")).toBe(expected.length === 0);
    expect(ran).toEqual(expected);
  },
);

test("a suspended call requests approval again, and calls that ran in the same turn do not run again", async () => {
  const ran: string[] = [];
  const approvals: Approvals = createApprovals();
  const script: Script = ({ prompt }) =>
    prompt.at(-1)?.role === "tool"
      ? { text: "Done." }
      : {
          toolCalls: [
            { name: "pay", id: "c1", input: { amount: 500 } },
            { name: "pay", id: "c2", input: { amount: 1 } },
          ],
        };
  const place = openDoomed(join(folder, "off.db"), { at: 0, when: "after" });
  const tool = { needsApproval: (input: { readonly amount?: number }) => (input.amount ?? 0) > 100 };
  const over = { approvals, store: place.store };
  const first = open({ over, ran, script, tool });
  const asked = first.asked();
  const stop = new AbortController();
  const options = { operationId: "op_pay" };
  const answer = first.agent.session().prompt("pay", { ...options, signal: stop.signal });
  const { approval_id } = await asked;
  const reason = new KitError({ code: "aborted", message: "Stopping.", meta: { will_resume: true } });
  stop.abort(reason);
  await expect(answer).rejects.toBe(reason);
  expect(ran).toEqual(["pay 1"]);
  const second = open({ over, ran, script, tool });
  const again = second.asked();
  const resumed = second.agent.session().prompt("pay", options);
  expect((await again).approval_id).toBe(approval_id);
  await second.agent.approvals.decide(approval_id, { approved: true });
  expect((await resumed).messages[2]?.content).toMatchObject([{ is_error: false }, { is_error: false }]);
  expect(ran).toEqual(["pay 1", "pay 500"]);
  await place.store.close();
});
