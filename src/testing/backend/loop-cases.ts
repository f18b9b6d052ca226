import assert from "node:assert/strict";
import { defineTool } from "../../agents/define/tool.ts";
import type { ToolCallPart } from "../../protocol/message.ts";
import { type BackendSubject, openStage, requires, resultsOf, rolesOf } from "./backend-stage.ts";

type Check = (subject: BackendSubject) => Promise<void>;

/** Cases about turns, calls, and answers of hostile models. */
export const loopChecks: Readonly<Record<string, Check>> = {
  "an answer is one turn: its deltas as they come, its usage, its place in the log": async (subject) => {
    const stage = openStage(subject, {
      script: [{ deltas: ["Good ", "day", "."], usage: { input: 7, output: 3 } }],
    });
    const stream = stage.agent.session().stream("hello");
    const deltas: string[] = [];
    for await (const event of stream) if (event.type === "text_delta") deltas.push(event.text);
    const { text, usage, metadata } = await stream.result;
    assert.equal(text, "Good day.");
    assert.equal(deltas.join(""), "Good day.");
    assert.deepEqual([usage.input, usage.output, metadata.turns], [7, 3, 1]);
    assert.equal(rolesOf(await stage.log()), "user assistant");
    const types = stage.events.map(({ type }) => type).filter((type) => type !== "text_delta");
    assert.deepEqual(types, [
      "operation_start",
      "agent_start",
      "turn_request",
      "turn",
      "turn_end",
      "operation",
      "idle",
    ]);
  },

  "a call is run and its result shown to the model, which then answers": async (subject) => {
    const stage = openStage(subject, {
      script: [
        requires("lamp", { usage: { input: 10, output: 2 } }),
        { text: "12", usage: { input: 20, output: 1 } },
      ],
    });
    const { text, usage, metadata, messages } = await stage.agent.session().prompt("the lamp?");
    assert.equal(text, "12");
    assert.deepEqual([usage.input, usage.output, metadata.turns], [30, 3, 2]);
    assert.deepEqual(stage.ran, ["price lamp"]);
    assert.equal(rolesOf(await stage.log()), "user assistant tool assistant");
    assert.equal(messages.length, 4);
    const [last] = stage.model.calls[1]?.prompt.slice(-2) ?? [];
    assert.ok(JSON.stringify(stage.model.calls[1]?.prompt).includes("lamp costs 12"), JSON.stringify(last));
    const tools = stage.events.filter(({ type }) => type.startsWith("tool_")).map(({ type }) => type);
    assert.deepEqual(tools, ["tool_start", "tool_end"]);
  },

  "the model sees the system prompt, the tools and the whole history": async (subject) => {
    const stage = openStage(subject, {
      script: [requires("lamp"), { text: "It is 12." }, { text: "Still 12." }],
      profile: { instructions: "Be brief, says the shop." },
    });
    await stage.agent.session().prompt("the lamp?");
    await stage.agent.session().prompt("and now?");
    const call = stage.model.calls[2];
    assert.ok(call?.tools?.some(({ name }) => name === "price"));
    const output = JSON.stringify(call?.prompt);
    for (const part of ["Be brief, says the shop.", "the lamp?", "lamp costs 12", "It is 12.", "and now?"])
      assert.ok(output.includes(part), part);
    // Prompts are live arrays: the last one contains everything, and nothing twice.
    assert.equal(output.split("lamp costs 12").length, 2);
  },

  "calls of one turn run side by side, and their results stand in the order of the calls": async (
    subject,
  ) => {
    const arrived = new Map<string, () => void>();
    const meet = (name: string) =>
      defineTool({
        name,
        description: "Waits for the other.",
        input: { type: "object" },
        timeoutMs: 4_000,
        execute: () =>
          new Promise<string>((resolve) => {
            arrived.set(name, () => resolve(`${name} was there`));
            if (arrived.size === 2) for (const go of [...arrived.values()].reverse()) go();
          }),
      });
    const stage = openStage(subject, {
      script: [
        {
          toolCalls: [
            { name: "one", id: "x" },
            { name: "two", id: "y" },
          ],
        },
        { text: "done" },
      ],
      profile: { tools: [meet("one"), meet("two")] },
    });
    assert.equal((await stage.agent.session().prompt("meet")).text, "done");
    assert.deepEqual(resultsOf(await stage.log()), ["one was there", "two was there"]);
  },

  "a tool that fails is a result, and the model goes on": async (subject) => {
    const stage = openStage(subject, { script: [{ toolCalls: [{ name: "fail" }] }, { text: "I see." }] });
    assert.equal((await stage.agent.session().prompt("try")).text, "I see.");
    assert.deepEqual(resultsOf(await stage.log()), ["The shelf is empty."]);
  },

  "calls of tools that are not there are answered, alone and beside others": async (subject) => {
    const stage = openStage(subject, {
      script: [
        { toolCalls: [{ name: "nope" }] },
        {
          toolCalls: [
            { name: "no such; tool", id: "a" },
            { name: "price", id: "b", input: { article: "cup" } },
          ],
        },
        { text: "done" },
      ],
    });
    const { text, metadata } = await stage.agent.session().prompt("go");
    assert.deepEqual([text, metadata.turns], ["done", 3]);
    assert.deepEqual(stage.ran, ["price cup"]);
    const results = resultsOf(await stage.log());
    assert.equal(results.length, 3);
    assert.match(results[0] ?? "", /no tool named "nope"/);
    assert.match(results[1] ?? "", /no tool named "no such; tool"/);
    assert.equal(results[2], "cup costs 12");
  },

  "arguments that are no JSON, no object or not what the tool takes are told to the model": async (
    subject,
  ) => {
    const broken = ['{"article":', '"lamp"', "[1]", "null", '{"articel":"lamp"}'];
    const stage = openStage(subject, {
      script: [
        ...broken.map((rawInput) => ({ toolCalls: [{ name: "price", rawInput }] })),
        { text: "I give up." },
      ],
    });
    assert.equal((await stage.agent.session().prompt("go")).text, "I give up.");
    assert.deepEqual(stage.ran, []);
    const results = resultsOf(await stage.log());
    assert.match(results[0] ?? "", /not valid JSON/);
    for (const result of results.slice(1)) assert.match(result, /not what price takes/);
    assert.equal(results.length, broken.length);
  },

  "ids of calls that a provider repeats name each call once, in one turn and in two": async (subject) => {
    const call = (article: string) => ({ name: "price", id: "call_1", input: { article } });
    const stage = openStage(subject, {
      script: [{ toolCalls: [call("cup"), call("pot")] }, { toolCalls: [call("jar")] }, { text: "done" }],
    });
    assert.equal((await stage.agent.session().prompt("go")).text, "done");
    assert.deepEqual(stage.ran, ["price cup", "price pot", "price jar"]);
    const log = await stage.log();
    const messages = log.flatMap((entry) => (entry.type === "message" ? [entry.message] : []));
    messages.forEach((message, at) => {
      const calls = message.content.filter((part): part is ToolCallPart => part.type === "tool_call");
      if (calls.length === 0) return;
      const answered = messages[at + 1]?.content.map(
        (part) => part.type === "tool_result" && part.tool_call_id,
      );
      assert.deepEqual(
        answered,
        calls.map(({ tool_call_id }) => tool_call_id),
      );
    });
  },

  "an answer of nothing at all is an answer": async (subject) => {
    const stage = openStage(subject, { script: [{ text: "" }, requires("cup"), {}, { text: "   " }] });
    const session = stage.agent.session();
    assert.equal((await session.prompt("say nothing")).text, "");
    assert.equal((await session.prompt("look, and say nothing")).text, "");
    assert.equal((await session.prompt("say blanks")).text.trim(), "");
    assert.equal(stage.model.calls.length, 4);
  },

  "text beside calls is kept, and an answer may be long and strange": async (subject) => {
    const strange = `${"a".repeat(100_000)} \u2028 🦊 \${x} {{y}} <script>`;
    const stage = openStage(subject, {
      script: [requires("cup", { text: "Let me look." }), { text: strange }],
    });
    assert.equal((await stage.agent.session().prompt("go")).text, strange);
    assert.ok(JSON.stringify(await stage.log()).includes("Let me look."));
  },

  "forty turns are as good as one": async (subject) => {
    const stage = openStage(subject, {
      script: [...Array.from({ length: 40 }, (_, at) => requires(`lamp ${at}`)), { text: "done" }],
    });
    assert.equal((await stage.agent.session().prompt("go")).text, "done");
    assert.equal(stage.ran.length, 40);
  },

  "a role, tools of the call and another model hold for the call": async (subject) => {
    const stage = openStage(subject, { script: [{ toolCalls: [{ name: "extra" }] }, { text: "done" }] });
    const extra = defineTool({
      name: "extra",
      description: "More.",
      input: { type: "object" },
      execute: () => "more",
    });
    const { text, model } = await stage.agent.session().prompt("go", {
      tools: [extra],
      model: "scripted/other",
      role: { name: "buyer", description: "Buys.", instructions: "You buy." },
    });
    assert.deepEqual([text, model.id], ["done", "scripted/other"]);
    assert.deepEqual(resultsOf(await stage.log()), ["more"]);
    assert.ok(JSON.stringify(stage.model.calls[0]?.prompt).includes("You buy."));
  },
};
