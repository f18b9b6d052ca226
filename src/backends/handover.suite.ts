import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { expect, test } from "vitest";
import { createApprovals } from "../agents/approvals/approvals.ts";
import { InMemorySessionStore } from "../stores/memory/memory-store.ts";
import { nextEvent, openStage, requires, resultsOf, rolesOf } from "../testing/backend/backend-stage.ts";
import type { Script, ScriptedTurn } from "../testing/scripted-model.ts";
import type { BackendChoice } from "./contract.ts";

type ScriptedCall = NonNullable<ScriptedTurn["toolCalls"]>[number];

/** A framework whose agents hand the work over to each other. Its parts are made in the tests, once its package is loaded. */
export interface HandoverSubject {
  readonly projectRoot?: string;
  /** `Desk`, which hands over to `Billing` and `Repairs`; these have the operation's tools, and may hand over again. */
  readonly shop: () => BackendChoice;
  /** `Desk` alone, given as an agent that is ready. */
  readonly whole: () => BackendChoice;
  /** An agent with the operation's tools, whose output is an object with the number `sum`. */
  readonly typed: () => BackendChoice;
  /** Agents with an option that kit could not enforce, and what the refusal says. */
  readonly refused: () => readonly (readonly [BackendChoice, RegExp])[];
  /** The call that hands the work over. */
  readonly call: (agent: string) => ScriptedCall;
  /** The agents that the model of a turn can hand over to. */
  readonly offers: (tools: NonNullable<LanguageModelV4CallOptions["tools"]>) => readonly string[];
  /** The result of the second of two handovers in one turn. */
  readonly second: RegExp;
}

/** The instructions of the agents of a shop. */
export const instructions = { Desk: "You greet.", Billing: "You do Billing.", Repairs: "You do Repairs." };

/** Notes the instructions that each turn is asked under: a scripted model keeps prompts that go on changing. */
export function noting(script: readonly ScriptedTurn[], asked: string[]): Script {
  let turn = 0;
  return ({ prompt }) => {
    const system = JSON.stringify(prompt[0]);
    asked.push(Object.values(instructions).find((words) => system.includes(words)) ?? system);
    turn += 1;
    return script[turn - 1] ?? { error: new Error("one turn too many") };
  };
}

export const sums = { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] };

/** The promises about agents that hand over, for the tests of each framework that has them. */
export function handoverTests(subject: HandoverSubject): void {
  const { projectRoot, call } = subject;
  const to = (agent: string): ScriptedTurn => ({ toolCalls: [call(agent)] });
  const stageOf = (backend: BackendChoice, script: Script, over = {}) =>
    openStage({ create: () => backend, projectRoot }, { script, ...over });

  test("the agent that the work is handed to goes on with its own instructions and tools, shown as a task", async () => {
    const asked: string[] = [];
    const script = [to("Billing"), requires("lamp"), to("Desk"), { text: "Bye." }];
    const stage = stageOf(subject.shop(), noting(script, asked));
    expect((await stage.agent.session().prompt("the lamp?")).text).toBe("Bye.");
    expect(stage.ran).toEqual(["price lamp"]);
    const { Desk, Billing } = instructions;
    expect(asked).toEqual([Desk, Billing, Billing, Desk]);
    const offered = stage.model.calls.map(({ tools = [] }) => [
      tools.some(({ name }) => name === "price"),
      subject.offers(tools).toSorted(),
    ]);
    expect(offered).toEqual([
      [false, ["Billing", "Repairs"]],
      [true, ["Desk", "Repairs"]],
      [true, ["Desk", "Repairs"]],
      [false, ["Billing", "Repairs"]],
    ]);
    const tasks = stage.events.flatMap((event): readonly unknown[] => {
      if (event.type === "task_start") return [["start", event.task_agent, event.tool_call_id !== undefined]];
      if (event.type === "task_end") return [["end", event.is_error]];
      return event.type === "tool_start" ? [event.tool] : [];
    });
    expect(tasks).toEqual([
      call("Billing").name,
      ["start", "Billing", true],
      "price",
      call("Desk").name,
      ["end", false],
      ["start", "Desk", true],
      ["end", false],
    ]);
    expect(stage.events.at(-2)?.type).toBe("operation");
    expect(rolesOf(await stage.log())).toBe("user assistant tool assistant tool assistant tool assistant");
  });

  test("the first of two handovers in one turn counts, and the model is told", async () => {
    const both = { toolCalls: ["Repairs", "Billing"].map((agent) => ({ ...call(agent), id: agent })) };
    const asked: string[] = [];
    const stage = stageOf(subject.shop(), noting([both, { text: "Fixed." }], asked));
    expect((await stage.agent.session().prompt("go")).text).toBe("Fixed.");
    expect(asked[1]).toBe(instructions.Repairs);
    expect(resultsOf(await stage.log())[1]).toMatch(subject.second);
    expect(stage.events.filter(({ type }) => type === "task_start")).toHaveLength(1);
  });

  test("a handover that the agent's policy puts under approval and a person denies does not take place", async () => {
    const rules = {
      profile: { approvals: { tools: ["transfer_to_*"] } },
      over: { approvals: createApprovals() },
    };
    const asked: string[] = [];
    const stage = stageOf(subject.shop(), noting([to("Billing"), { text: "I stay." }], asked), rules);
    const request = nextEvent(stage.agent, "approval_request");
    const answer = stage.agent.session().prompt("go");
    await stage.agent.approvals.decide((await request).approval_id, { approved: false });
    expect((await answer).text).toBe("I stay.");
    expect(asked).toEqual([instructions.Desk, instructions.Desk]);
    expect(stage.events.filter(({ type }) => type === "task_start")).toEqual([]);
  });

  test("a repair, and work after a crash, go on with the agent that has it; a new question begins anew", async () => {
    const { Desk, Billing } = instructions;
    const script = [to("Billing"), { text: "twelve" }, { text: '{"sum": 12}' }, { text: "Hello again." }];
    const asked: string[] = [];
    const session = stageOf(subject.shop(), noting(script, asked)).agent.session();
    expect((await session.prompt("sum up", { result: sums })).result).toEqual({ sum: 12 });
    expect((await session.prompt("hello")).text).toBe("Hello again.");
    expect(asked).toEqual([Desk, Billing, Billing, Desk]);

    const store = new InMemorySessionStore();
    const hang: Script = ({ prompt }) =>
      prompt.at(-1)?.role === "tool" ? { deltas: ["…"], delayMs: 1e6 } : to("Billing");
    const first = stageOf(subject.shop(), hang, { over: { store } });
    const dying = first.agent.session().prompt("go", { operationId: "op_1" });
    dying.catch(() => undefined);
    await expect.poll(() => first.model.calls).toHaveLength(2);
    const again: string[] = [];
    const second = stageOf(subject.shop(), noting([{ text: "Billed." }], again), { over: { store } });
    expect((await second.agent.session().prompt("go", { operationId: "op_1" })).text).toBe("Billed.");
    expect(again).toEqual([Billing]);
  });

  test("agents that are given whole get the operation's tools, and serve operations side by side", async () => {
    const backend = subject.whole();
    const script: Script = ({ prompt }) =>
      prompt.at(-1)?.role === "tool" ? { text: "done" } : requires("cup");
    const stages = [stageOf(backend, script), stageOf(backend, script)];
    const texts = await Promise.all(
      stages.map(async ({ agent }) => (await agent.session().prompt("go")).text),
    );
    expect(texts).toEqual(["done", "done"]);
    for (const { ran } of stages) expect(ran).toEqual(["price cup"]);
  });

  test("an agent's typed output is asked of the provider, and what does not fit is an error", async () => {
    const script = [requires("cup"), { text: 'It is {"sum": 12}' }, { text: "twelve" }];
    const stage = stageOf(subject.typed(), script);
    const session = stage.agent.session();
    expect((await session.prompt("sum")).text).toBe('It is {"sum": 12}');
    expect(stage.ran).toEqual(["price cup"]);
    expect(stage.model.calls[0]?.tools?.map(({ name }) => name)).not.toContain("set_model_response");
    await expect(session.prompt("again")).rejects.toMatchObject({ code: "typed_output" });
  });

  test("an option that kit could not enforce is refused before the model is asked", async () => {
    for (const [backend, said] of subject.refused()) {
      const stage = stageOf(backend, []);
      await expect(stage.agent.session().prompt("go")).rejects.toMatchObject({
        code: "invalid_request",
        message: expect.stringMatching(said),
      });
      expect(stage.model.calls).toEqual([]);
    }
  });
}
