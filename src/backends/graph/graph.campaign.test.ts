import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { HumanMessage, SystemMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import {
  Annotation,
  interrupt,
  MemorySaver,
  MessagesAnnotation,
  Send,
  START,
  StateGraph,
} from "@langchain/langgraph";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import type { AgentRuntime } from "../../agents/agent-runtime.ts";
import { createApprovals } from "../../agents/approvals/approvals.ts";
import { virtual } from "../../sandboxes/virtual/virtual-sandbox.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { nextEvent, openStage, requires, resultsOf, rolesOf } from "../../testing/backend/backend-stage.ts";
import type { Script } from "../../testing/scripted-model.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { backendContract } from "../contract.suite.ts";
import type { AgentBackend } from "../contract.ts";
import { loadPeer } from "../load-peer.ts";
import { graph } from "./graph.ts";
import type { GraphWork } from "./graph-model.ts";

backendContract({ name: "graph", create: () => "graph" });
function open(backend: AgentBackend, script: Script, over: Partial<AgentRuntime> = {}) {
  return openStage({ create: () => backend }, { script, over });
}

const workIn = (config: { configurable?: Record<string, unknown> }): GraphWork =>
  config.configurable?.kit as GraphWork;

test("a compiled graph finds the model, the tools and the files of its agent in the configuration", async () => {
  const compiled = new StateGraph(MessagesAnnotation)
    .addNode("work", async (_state, config) => {
      const { tools, files } = workIn(config);
      const price = tools.find(({ name }) => name === "price");
      const said: unknown = await price?.invoke({ article: "jar" });
      await files.upload("out/price.txt", new TextEncoder().encode(String(said)));
      return {
        messages: [new HumanMessage(new TextDecoder().decode(await files.download("out/price.txt")))],
      };
    })
    .addEdge(START, "work")
    .compile();
  const stage = open(graph(compiled), [], { sandbox: virtual() });
  const { text } = await stage.agent.session().prompt("go");
  expect(text).toBe("jar costs 12");
  expect(stage.ran).toEqual(["price jar"]);
  expect(rolesOf(await stage.log())).toBe("user assistant tool assistant");
  await stage.agent.close();
});

test("a node asks with prompts of its own: beside the conversation, and counted", async () => {
  const State = Annotation.Root({ topic: Annotation<string>, joke: Annotation<string> });
  const backend = graph(
    ({ model }) =>
      new StateGraph(State)
        .addNode("tell", async ({ topic }) => ({ joke: (await model.invoke(`A joke about ${topic}.`)).text }))
        .addNode("polish", async ({ joke }) => {
          const polished = await model.invoke([new SystemMessage("Polish."), new HumanMessage(joke)]);
          return { joke: polished.text };
        })
        .addEdge(START, "tell")
        .addEdge("tell", "polish")
        .compile(),
    { input: () => ({ topic: "lamps" }), output: ({ joke }: { joke: string }) => joke },
  );
  const stage = open(backend, [
    { text: "raw", usage: { input: 2 } },
    { text: "fine", usage: { input: 3 } },
  ]);
  const stream = stage.agent.session().stream("go");
  let said = "";
  for await (const event of stream) if (event.type === "text_delta") said += event.text;
  const { text, usage, metadata } = await stream.result;
  expect([text, said, usage.input, metadata.turns]).toEqual(["fine", "fine", 5, 2]);
  expect(JSON.stringify(stage.model.calls[0]?.prompt)).toContain("A joke about lamps.");
  expect(JSON.stringify(stage.model.calls[1]?.prompt)).toContain("Polish.");
  expect(rolesOf(await stage.log())).toBe("user assistant");
});

test("branches that run side by side each have their answer, and a node has JSON of a schema", async () => {
  const State = Annotation.Root({
    found: Annotation<string[]>({ reducer: (old, added) => [...old, ...added], default: () => [] }),
    word: Annotation<string>,
    best: Annotation<number>,
  });
  const backend = graph(
    ({ model }) =>
      new StateGraph(State)
        .addNode("look", async ({ word }) => ({ found: [(await model.invoke(`about ${word}`)).text] }))
        .addNode("choose", async ({ found }) =>
          model
            .withStructuredOutput(z.object({ best: z.number() }))
            .invoke(`choose of ${found.toSorted().join()}`),
        )
        .addConditionalEdges(START, () => ["a", "b", "c"].map((word) => new Send("look", { word })))
        .addEdge("look", "choose")
        .compile(),
    {
      input: () => ({}),
      output: ({ best, found }: { best: number; found: string[] }) => `${best} of ${found.length}`,
    },
  );
  const stage = open(backend, ({ prompt }) => {
    const asked = JSON.stringify(prompt.at(-1));
    if (asked.includes("choose of about a,about b,about c")) return { text: 'Sure: {"best": 2}' };
    return { text: /about \w/.exec(asked)?.[0] ?? "?", delayMs: 5 };
  });
  expect((await stage.agent.session().prompt("go")).text).toBe("2 of 3");
});

test("an interrupt waits as an approval does, over a restart too, and the graph goes on with the decision", async () => {
  let steps = 0;
  const backend = () =>
    graph(({ model }) =>
      new StateGraph(MessagesAnnotation)
        .addNode("draft", async ({ messages }) => {
          steps += 1;
          return { messages: [await model.invoke(messages)] };
        })
        .addNode("publish", () => {
          const first = interrupt<unknown, { approved: boolean; by?: string }>({ page: 1 });
          const second = interrupt<unknown, { approved: boolean }>({
            action_request: { action: "announce", args: { to: "all" } },
          });
          return { messages: [new HumanMessage(`${first.approved} by ${first.by}, ${second.approved}`)] };
        })
        .addEdge(START, "draft")
        .addEdge("draft", "publish")
        .compile(),
    );
  const store = new InMemorySessionStore();
  const first = open(backend(), [{ text: "draft" }], { store, approvals: createApprovals() });
  const asked = nextEvent(first.agent, "approval_request");
  first.agent
    .session()
    .prompt("go", { operationId: "op_1" })
    .catch(() => undefined);
  const { approval_id, tool: name, args } = await asked;
  expect([name, args]).toEqual(["interrupt", { page: 1 }]);
  const second = open(backend(), [], { store, approvals: createApprovals() });
  const again = nextEvent(second.agent, "approval_request");
  const answer = second.agent.session().prompt("go", { operationId: "op_1" });
  expect((await again).approval_id).toBe(approval_id);
  const other = nextEvent(second.agent, "approval_request");
  await second.agent.approvals.decide(approval_id, { approved: true, by: "Ann" });
  const announce = await other;
  expect([announce.tool, announce.args]).toEqual(["announce", { to: "all" }]);
  await second.agent.approvals.decide(announce.approval_id, { approved: false });
  expect((await answer).text).toBe("true by Ann, false");
  expect(steps).toBe(1);
  const third = open(backend(), [], { store });
  expect((await third.agent.session().prompt("go", { operationId: "op_1" })).text).toBe("true by Ann, false");
});

test("an interrupt is answered by a function where one is given, and a breakpoint by an approval", async () => {
  const build = ({ model }: GraphWork) =>
    new StateGraph(MessagesAnnotation)
      .addNode("ask", async ({ messages }) => {
        const city = interrupt<string, string>("which city?");
        return { messages: [await model.invoke([new SystemMessage(`in ${city}`), ...messages])] };
      })
      .addNode("end", () => ({}))
      .addEdge(START, "ask")
      .addEdge("ask", "end")
      .compile({ interruptBefore: ["end"] });
  for (const approved of [true, false]) {
    const backend = graph(build, {
      onInterrupt: async ({ value }) => (value === "which city?" ? "Rome" : ""),
    });
    const stage = open(backend, [{ text: "sunny" }], { approvals: createApprovals() });
    const asked = nextEvent(stage.agent, "approval_request");
    const answer = stage.agent.session().prompt("weather?");
    const { approval_id, tool: name, args } = await asked;
    expect([name, args]).toEqual(["breakpoint", { next: ["end"] }]);
    const ended = approved
      ? expect(answer).resolves.toMatchObject({ text: "sunny" })
      : expect(answer).rejects.toMatchObject({ code: "forbidden" });
    await stage.agent.approvals.decide(approval_id, { approved });
    await ended;
    expect(JSON.stringify(stage.model.calls[0]?.prompt[0])).toContain("in Rome");
  }
});

test("a graph's state is saved once, however long its messages grow", async () => {
  const sizeOf = async (turns: number): Promise<number> => {
    const text = "x".repeat(2_000);
    const script = [
      ...Array.from({ length: turns }, (_, at) => requires(`cup ${at}`, { text })),
      { text: "done" },
    ];
    const stage = open(graph(), script);
    await stage.agent.session().prompt("go");
    const notes = (await stage.log()).filter((entry) => entry.type === "note");
    return JSON.stringify(notes).length / turns;
  };
  expect(await sizeOf(24)).toBeLessThan((await sizeOf(6)) * 1.5);
});

test("a tool that its agent does not have is not a tool of the graph", async () => {
  const foreign = tool(() => "ran", { name: "foreign", description: "", schema: z.object({}) });
  const stage = open(
    graph(({ model }) => createReactAgent({ llm: model, tools: [foreign] })),
    [{ text: "done" }],
  );
  await expect(stage.agent.session().prompt("go")).rejects.toThrow(
    'binds a tool "foreign" that its agent does not have',
  );
});

test("an error of a node is the operation's error, and the session goes on", async () => {
  const compiled = new StateGraph(MessagesAnnotation)
    .addNode("work", () => {
      throw new RangeError("my node");
    })
    .addEdge(START, "work")
    .compile({ checkpointer: new MemorySaver() });
  const stage = open(graph(compiled), [{ text: "well" }]);
  const session = stage.agent.session();
  await expect(session.prompt("go")).rejects.toThrow("my node");
  expect((await session.prompt("go", { backend: "typed" })).text).toBe("well");
});

test("nothing of an agent goes to LangSmith, whatever the environment says", async () => {
  const received: string[] = [];
  const server = createServer((request, reply) => {
    received.push(request.url ?? "");
    reply.end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  for (const name of [
    "LANGSMITH_TRACING",
    "LANGSMITH_TRACING_V2",
    "LANGCHAIN_TRACING_V2",
    "LANGCHAIN_TRACING",
  ])
    vi.stubEnv(name, "true");
  for (const name of ["LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT"]) vi.stubEnv(name, address);
  for (const name of ["LANGSMITH_API_KEY", "LANGCHAIN_API_KEY"]) vi.stubEnv(name, "key");
  vi.stubEnv("LANGCHAIN_CALLBACKS_BACKGROUND", "false");
  const stage = open(
    graph(({ model, tools }) => createReactAgent({ llm: model, tools })),
    [requires("cup"), { text: "done" }],
  );
  await stage.agent.session().prompt("go");
  await new Promise((resolve) => setTimeout(resolve, 50));
  vi.unstubAllEnvs();
  expect(resultsOf(await stage.log())).toEqual(["cup costs 12"]);
  expect(received).toEqual([]);
});

test("a package is taken from the project before kit's own, and one that is missing is named with its command", async () => {
  const folder = testFolder(onTestFinished);
  const { mkdirSync, writeFileSync } = await import("node:fs");
  const own = join(folder, "node_modules", "@langchain", "core");
  mkdirSync(own, { recursive: true });
  writeFileSync(
    join(own, "package.json"),
    JSON.stringify({
      name: "@langchain/core",
      exports: { "./messages": { require: "./no.cjs", import: "./yes.mjs" } },
    }),
  );
  writeFileSync(join(own, "yes.mjs"), "export const whose = 'the project';");
  const use = {
    from: folder,
    what: "The backend graph",
    packages: ["@langchain/langgraph", "@langchain/core"],
  };
  expect(await loadPeer("@langchain/core/messages", use)).toMatchObject({ whose: "the project" });
  expect(await loadPeer("@langchain/langgraph", use)).toHaveProperty("StateGraph");
  await expect(loadPeer("@langchain/no-such-thing", use)).rejects.toMatchObject({
    code: "unavailable",
    message: "The backend graph needs a package that is not installed: @langchain/no-such-thing.",
    hint: "Run: npm install @langchain/langgraph @langchain/core",
  });
});
