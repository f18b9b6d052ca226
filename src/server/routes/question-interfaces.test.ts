import { HttpAgent } from "@ag-ui/client";
import { asSchema, uiMessageChunkSchema } from "ai";
import { expect, test } from "vitest";
import { KitChatTransport } from "../../client/chat-transport.ts";
import type { UiChunk } from "../../protocol/ui.ts";
import { connectMcp, modernRequest, textOf } from "../testing/mcp-client.ts";
import { serveForTests } from "../testing/serve-for-tests.ts";

const served = serveForTests({
  mcp: { waitMs: 20_000 },
  files: {
    "src/agents/host.ts": `export const triggers = { webhook: true };
const schema = { type: "object", properties: { guests: { type: "integer", minimum: 1 } }, required: ["guests"] };
const weather = {
  name: "weather",
  description: "Asks, in place of a forecast.",
  input: { type: "object" },
  execute: async (_, { ask }) => {
    const { action, value } = await ask({ message: "For how many?", schema });
    return action + (value?.guests ?? "");
  },
};
export default { kind: "kit.agent", describe: async () => ({ tools: [weather] }) };
`,
  },
});

test("a client of /mcp shows the form of a question", async () => {
  const asked: string[] = [];
  const answers: object[] = [{ action: "accept", content: { guests: 2 } }, { action: "decline" }];
  const client = await connectMcp(served.url, {
    answer: (message) => {
      asked.push(message);
      return answers.shift() ?? {};
    },
  });
  const call = { name: "agent_host", arguments: { message: "weather" } };
  expect(textOf(await client.callTool(call))).toBe("It said accept2.");
  expect(textOf(await client.callTool(call))).toBe("It said decline.");
  expect(asked).toEqual(Array.from({ length: 2 }, () => "weather of the agent host asks: For how many?"));
  await client.close();
});

test("a client of /mcp whose answer has another form is asked again", async () => {
  const call = async (inputResponses?: object) => {
    const params = { name: "agent_host", arguments: { message: "weather", key: "again" }, inputResponses };
    const request = modernRequest("tools/call", params, { elicitation: { form: {} } });
    return (await served.send("/mcp", request)).body.result;
  };
  const asked = await call();
  expect(asked).toMatchObject({ resultType: "input_required" });
  const [id = ""] = Object.keys(asked.inputRequests);
  const again = await call({ [id]: { action: "accept", content: { guests: 0 } } });
  expect(Object.keys(again.inputRequests)).toEqual([id]);
  const ended = await call({ [id]: { action: "accept", content: { guests: 4 } } });
  expect(JSON.stringify(ended)).toContain("It said accept4.");
});

test("a front end of AG-UI gets an interrupt with the schema, and its payload is the answer", async () => {
  const agent = new HttpAgent({ url: `${served.url}/agents/host/front/agui`, threadId: "thread" });
  agent.addMessage({ id: "said", role: "user", content: "weather" });
  let last: object | undefined;
  const run = async (options: object = {}): Promise<void> => {
    await agent.runAgent(options, {
      onEvent({ event }) {
        last = event;
      },
    });
  };
  await run();
  expect(last).toMatchObject({
    type: "RUN_FINISHED",
    outcome: {
      type: "interrupt",
      interrupts: [
        { reason: "input_required", message: "For how many?", responseSchema: { required: ["guests"] } },
      ],
    },
  });
  const { interrupts } = (last as { outcome: { interrupts: { id: string }[] } }).outcome;
  const interruptId = interrupts[0]?.id;
  await run({ resume: [{ interruptId, status: "resolved", payload: { guests: 3 } }] });
  expect(last).toMatchObject({ type: "RUN_FINISHED", outcome: { type: "success" } });
  expect(agent.messages.at(-1)?.content).toBe("It said accept3.");
});

test("a chat page gets a question as a part, answers it, and goes on with the answer of the agent", async () => {
  const transport = new KitChatTransport({ api: `${served.url}/agents/host/page/ui` });
  const chatId = "chat";
  const read = async (stream: ReadableStream<UiChunk> | null): Promise<UiChunk[]> => {
    const chunks: UiChunk[] = [];
    for await (const chunk of stream ?? []) chunks.push(chunk);
    return chunks;
  };
  const messages = [{ id: "m1", role: "user", parts: [{ type: "text", text: "weather" }] }];
  const first = await read(await transport.sendMessages({ chatId, messages, trigger: "submit-message" }));
  const part = first.find(({ type }) => type === "data-question");
  expect(part).toMatchObject({
    id: expect.stringMatching(/^question_/),
    data: { message: "For how many?", schema: { type: "object" }, state: "waiting" },
  });
  const messageId = first.find((chunk) => chunk.type === "start")?.messageId ?? "";
  expect(first.at(-1)).toMatchObject({ type: "finish", finishReason: "tool-calls" });
  const approvalId = part?.type === "data-question" ? part.id : "";
  const decision = { chatId, messageId, approvalId, approved: true };
  await expect(transport.approve({ ...decision, result: { guests: 0 } })).rejects.toThrow(
    "not what weather asks",
  );
  await transport.approve({ ...decision, result: { guests: 5 } });
  const again = await read(await transport.reconnectToStream({ chatId }));
  const states = again.flatMap((chunk) => (chunk.type === "data-question" ? [chunk.data.state] : []));
  expect(states).toEqual(["waiting", "answered"]);
  const reloaded = await served.send("/agents/host/page/ui/chat/messages");
  expect(reloaded.body.messages.at(-1).parts).toContainEqual(
    expect.objectContaining({
      type: "data-question",
      id: approvalId,
      data: expect.objectContaining({ state: "answered" }),
    }),
  );
  const types = again.map(({ type }) => type);
  expect(types).not.toContain("tool-approval-request");
  expect(types).toContain("tool-output-available");
  const schema = asSchema(uiMessageChunkSchema);
  for (const chunk of again) expect(await schema.validate?.(chunk)).toMatchObject({ success: true });
});
