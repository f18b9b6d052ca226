import assert from "node:assert/strict";
import { defineTool } from "../../agents/define/tool.ts";
import type { ProjectContext } from "../../agents/project-context.ts";
import { type BackendSubject, openStage, requires, resultsOf, rolesOf } from "./backend-stage.ts";

type Check = (subject: BackendSubject) => Promise<void>;

const answerSchema = {
  type: "object",
  properties: { answer: { type: "number" } },
  required: ["answer"],
  additionalProperties: false,
} as const;

const guarded: ProjectContext = {
  tools: [],
  stateAt: () => undefined,
  repositoryAt: () => ({
    workingFolder: "",
    tools: [],
    instructions: () => ({ text: "", sources: new Set(), parts: [] }),
    guidelinesFor: async (path) => [
      {
        id: "g1",
        rule: "prices.md",
        title: "Prices",
        content: `Round up in ${path}.`,
        source_file: "prices.md",
      },
    ],
    sourceAt: async () => undefined,
    rules: async () => [],
  }),
};

/** Cases about kit's work around the turns: typed output, limits, failures, compaction, guidelines, tasks. */
export const workChecks: Readonly<Record<string, Check>> = {
  "an answer is checked against its schema, and repaired by the model": async (subject) => {
    const stage = openStage(subject, {
      script: [
        requires("cup"),
        { text: "forty-two" },
        { text: '{"answer": "42"}' },
        { text: '{"answer": 42}' },
      ],
    });
    const { result, metadata } = await stage.agent.session().prompt("count", { result: answerSchema });
    assert.deepEqual(result, { answer: 42 });
    assert.equal(metadata.turns, 4);
    assert.equal(
      rolesOf(await stage.log()),
      "user assistant tool assistant repair assistant repair assistant",
    );
    const purposes = stage.events.flatMap((event) => (event.type === "turn" ? [event.purpose] : []));
    assert.deepEqual(purposes, ["agent", "agent", "repair", "repair"]);
  },

  "an answer that never fits ends with every attempt": async (subject) => {
    const stage = openStage(subject, {
      script: [{ text: "one" }, { text: "two" }],
      profile: { typedRetries: 1 },
    });
    await assert.rejects(stage.agent.session().prompt("count", { result: answerSchema }), {
      code: "typed_output",
    });
    assert.equal(stage.model.calls.length, 2);
  },

  "a budget of turns and of tokens ends the work, and the history is one to go on from": async (subject) => {
    const stage = openStage(subject, {
      script: [requires("cup"), requires("pot"), { text: "on" }, requires("jar"), { text: "x" }],
    });
    const session = stage.agent.session();
    await assert.rejects(session.prompt("go", { budget: { maxTurns: 2 } }), { code: "budget_exceeded" });
    assert.equal(rolesOf(await stage.log()), "user assistant tool assistant tool");
    assert.equal((await session.prompt("go on")).text, "on");
    const rich = openStage(subject, { script: [requires("cup", { usage: { input: 90, output: 20 } })] });
    await assert.rejects(rich.agent.session().prompt("go", { budget: { maxTokens: 100 } }), {
      code: "budget_exceeded",
    });
  },

  "an error of the provider is the operation's, after one request": async (subject) => {
    const refused = Object.assign(new Error("no such model"), { statusCode: 404 });
    const stage = openStage(subject, { script: [requires("cup"), { error: refused }, { text: "well" }] });
    const session = stage.agent.session();
    await assert.rejects(session.prompt("go"), (error: { code?: string; cause?: unknown }) => {
      assert.equal(error.code, "model_error");
      assert.equal(error.cause, refused);
      return true;
    });
    assert.equal(stage.model.calls.length, 2);
    assert.equal(stage.events.filter(({ type }) => type === "operation").length, 1);
    assert.equal((await session.prompt("again")).text, "well");
  },

  "what passes is retried by kit alone": async (subject) => {
    const busy = Object.assign(new Error("busy"), { statusCode: 503 });
    const stage = openStage(subject, {
      script: [{ error: busy }, requires("cup"), { error: busy }, { text: "done" }],
    });
    assert.equal((await stage.agent.session().prompt("go")).text, "done");
    assert.equal(stage.model.calls.length, 4);
    const attempts = stage.events.flatMap((event) => (event.type === "turn_request" ? [event.attempt] : []));
    assert.deepEqual(attempts, [1, 2, 1, 2]);
    const down = openStage(subject, { script: Array.from({ length: 4 }, () => ({ error: busy })) });
    await assert.rejects(down.agent.session().prompt("go"), { code: "model_error" });
    assert.equal(down.model.calls.length, 4);
  },

  "an abort ends a slow answer at once, what was said is kept, and the session goes on": async (subject) => {
    const stage = openStage(subject, {
      script: [
        { deltas: ["I ", "was ", ...Array.from({ length: 200 }, () => "so slow ")], delayMs: 20 },
        { text: "Yes." },
      ],
    });
    const session = stage.agent.session();
    const stop = new AbortController();
    const end = stage.agent.onEvent(({ type }) => {
      if (type !== "text_delta") return;
      end();
      stop.abort(new Error("enough"));
    });
    await assert.rejects(session.prompt("go", { signal: stop.signal }), { code: "aborted" });
    assert.equal(rolesOf(await stage.log()), "user assistant");
    assert.equal(stage.events.at(-2)?.type, "operation");
    assert.equal((await session.prompt("there?")).text, "Yes.");
  },

  "an abort ends a tool, and its call has a result": async (subject) => {
    const stop = new AbortController();
    const wait = defineTool({
      name: "wait",
      description: "Waits.",
      input: { type: "object" },
      execute: (_input, { signal }) => {
        setTimeout(() => stop.abort(new Error("enough")), 5);
        return new Promise<string>((resolve) => signal.addEventListener("abort", () => resolve("stopped")));
      },
    });
    const stage = openStage(subject, {
      script: [{ toolCalls: [{ name: "wait" }] }, { text: "Yes." }],
      profile: { tools: [wait] },
    });
    const session = stage.agent.session();
    await assert.rejects(session.prompt("go", { signal: stop.signal }), { code: "aborted" });
    assert.equal(rolesOf(await stage.log()), "user assistant tool");
    assert.match(resultsOf(await stage.log())[0] ?? "", /aborted/);
    assert.equal((await session.prompt("there?")).text, "Yes.");
  },

  "a history that grows past the window is shortened between turns": async (subject) => {
    const complete = { usage: { input: 900, output: 1 } };
    const stage = openStage(subject, {
      script: ({ prompt }) => {
        const output = JSON.stringify(prompt);
        if (JSON.stringify(prompt[0]).includes("colleague")) return { text: "They asked for prices." };
        if (output.includes("They asked for prices.")) return { text: "done" };
        return requires("cup", complete);
      },
      profile: { compaction: { contextWindowTokens: 1_000, reserveTokens: 200, keepRecentTokens: 1 } },
    });
    assert.equal((await stage.agent.session().prompt("go")).text, "done");
    const reasons = stage.events.flatMap((event) =>
      event.type === "compaction_start" ? [event.reason] : [],
    );
    assert.deepEqual(reasons, ["threshold"]);
  },

  "a provider that finds the history too long is asked again with a shorter one": async (subject) => {
    const overflow = Object.assign(new Error("prompt is too long: 9 tokens"), { statusCode: 400 });
    let refused = false;
    const stage = openStage(subject, {
      script: ({ prompt }) => {
        if (JSON.stringify(prompt[0]).includes("colleague")) return { text: "They asked for prices." };
        if (JSON.stringify(prompt).includes("They asked for prices.")) return { text: "done" };
        if (prompt.at(-1)?.role !== "tool") return requires("cup");
        refused = true;
        return { error: overflow };
      },
      profile: { compaction: { keepRecentTokens: 1 } },
    });
    assert.equal((await stage.agent.session().prompt("go")).text, "done");
    assert.ok(refused);
    const reasons = stage.events.flatMap((event) =>
      event.type === "compaction_start" ? [event.reason] : [],
    );
    assert.deepEqual(reasons, ["overflow"]);
  },

  "guidelines for the files that a tool touched stand before the model's next turn": async (subject) => {
    const inspect = defineTool<{ readonly path: string }>({
      name: "look",
      description: "Looks.",
      input: { type: "object" },
      touches: ({ path }) => [path],
      execute: () => "seen",
    });
    const stage = openStage(subject, {
      script: [
        { toolCalls: [{ name: "look", input: { path: "shop.ts" } }] },
        { toolCalls: [{ name: "look", input: { path: "shop.ts" } }] },
        { text: "done" },
      ],
      profile: { tools: [inspect] },
      over: { project: guarded },
    });
    assert.equal((await stage.agent.session().prompt("go")).text, "done");
    assert.equal(rolesOf(await stage.log()), "user assistant tool guidelines assistant tool assistant");
    const output = JSON.stringify(stage.model.calls.at(-1)?.prompt);
    assert.equal(output.split("Round up in shop.ts.").length, 2);
  },

  "a task works in a session of its own, and its answer is the call's result": async (subject) => {
    const stage = openStage(subject, {
      script: ({ prompt }) => {
        const isDone = prompt.at(-1)?.role === "tool";
        if (JSON.stringify(prompt[1]).includes("the child's work"))
          return isDone ? { text: "the child is done" } : requires("cup");
        return isDone
          ? { text: "done" }
          : { toolCalls: [{ name: "task", input: { prompt: "the child's work" } }] };
      },
    });
    assert.equal((await stage.agent.session().prompt("begin")).text, "done");
    assert.deepEqual(resultsOf(await stage.log()), ["the child is done"]);
    assert.deepEqual(stage.ran, ["price cup"]);
    const types = stage.events.map(({ type }) => type);
    assert.ok(types.indexOf("task_start") < types.indexOf("task_end"));
  },

  "kit's own loop works for the call that asks for it": async (subject) => {
    const stage = openStage(subject, { script: [requires("cup"), { text: "done" }] });
    assert.equal((await stage.agent.session().prompt("go", { backend: "typed" })).text, "done");
  },
};
