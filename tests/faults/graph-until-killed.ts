/**
 * Runs a graph of four steps as one operation, and hangs at one point until it is killed: `node graph-until-killed.ts
 * <database> <point>`, where a point is `step 2` (after its answer and its call) or `tool 3` (inside its call). Prints
 * the requests to the model, the calls that run, and the answer.
 */
import { writeSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { HumanMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { defineTool } from "../../src/agents/define/tool.ts";
import { graph } from "../../src/backends/graph/graph.ts";
import type { GraphWork } from "../../src/backends/graph/graph-model.ts";
import { SqliteSessionStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { createScriptedModel } from "../../src/testing/scripted-model.ts";
import { createTestAgent } from "../../src/testing/test-runtime.ts";

const [file = "", hangsAt] = process.argv.slice(2);

function print(line: string): void {
  writeSync(1, `${line}\n`);
}

async function pass(here: string): Promise<void> {
  if (here !== hangsAt) return;
  // The log is written a moment after the work has continued.
  await delay(250);
  print("hangs");
  await new Promise(() => setInterval(() => undefined, 1_000));
}

const model = createScriptedModel(({ prompt }) => {
  const step = /Step (\d) of/.exec(JSON.stringify(prompt.at(-1)))?.[1];
  print(`asked ${step ?? "to end"}`);
  return { text: step === undefined ? "All is done." : `Plan ${step}.` };
});
const mark = defineTool<{ readonly step: number }>({
  name: "mark",
  description: "Marks a step.",
  input: { type: "object" },
  async execute({ step }) {
    print(`ran ${step}`);
    await pass(`tool ${step}`);
    return `marked ${step}`;
  },
});

function build({ model: requires, tools }: GraphWork) {
  const work = (step: number) => async () => {
    await requires.invoke([new HumanMessage(`Step ${step} of 4`)]);
    await tools.find(({ name }) => name === "mark")?.invoke({ step });
    await pass(`step ${step}`);
    return {};
  };
  return new StateGraph(MessagesAnnotation)
    .addNode("one", work(1))
    .addNode("two", work(2))
    .addNode("three", work(3))
    .addNode("four", work(4))
    .addNode("end", async ({ messages }) => ({ messages: [await requires.invoke(messages)] }))
    .addEdge(START, "one")
    .addEdge("one", "two")
    .addEdge("two", "three")
    .addEdge("three", "four")
    .addEdge("four", "end")
    .addEdge("end", END)
    .compile();
}

const agent = createTestAgent(
  model,
  { backend: graph(build), tools: [mark] },
  { store: new SqliteSessionStore({ file }), projectRoot: import.meta.dirname },
);
const { text } = await agent.session().prompt("go", { operationId: "op_1" });
print(text);
await agent.close();
