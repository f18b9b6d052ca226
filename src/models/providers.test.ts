import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Agent } from "../agents/harness.ts";
import { defineTool } from "../agents/tool.ts";
import { providerProtocols } from "../testing/provider-server/protocols.ts";
import { type ProviderServer, startProviderServer } from "../testing/provider-server/provider-server.ts";
import { createTestAgent } from "../testing/test-runtime.ts";
import { createModelResolver } from "./create-model-resolver.ts";
import { createOfflineGuide } from "./offline/offline-guide.ts";

let server: ProviderServer;
beforeAll(async () => {
  server = await startProviderServer();
});
afterAll(async () => {
  await server.close();
});

const add = defineTool<{ a: number; b: number }>({
  name: "add",
  description: "Adds.",
  input: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  },
  execute: ({ a, b }) => String(a + b),
});

function agentOf(provider: string, over: { idleTimeoutMs?: number } = {}): Agent {
  const resolveModel = createModelResolver({ env: {}, providers: server.providers });
  return createTestAgent(
    createOfflineGuide(),
    { model: `${provider}/m`, tools: [add] },
    {
      resolveModel,
      modelIdleTimeoutMs: over.idleTimeoutMs ?? 5_000,
      validateJson: (_schema, value) =>
        typeof value === "object" && value !== null && "a" in value ? [] : ["a is missing"],
    },
  );
}

describe.each(providerProtocols.map((protocol) => [protocol.provider, protocol] as const))(
  "%s, over real HTTP",
  (provider, protocol) => {
    const hello = { text: "Hello there." };

    test("a text is streamed, and its usage is counted", async () => {
      server.script([hello]);
      const stream = agentOf(provider).session().stream("hi");
      const deltas: string[] = [];
      for await (const event of stream) if (event.type === "text_delta") deltas.push(event.text);
      const { text, usage } = await stream.result;
      expect(text).toBe("Hello there.");
      expect(deltas.length).toBeGreaterThan(1);
      expect(usage).toMatchObject({ input: 11, output: 7, total_tokens: 18 });
    });

    test("a tool call is run and its result is sent back", async () => {
      server.script([
        { toolCall: { id: "call_1", name: "add", args: '{"a": 2, "b": 3}' } },
        { text: "Five." },
      ]);
      const { text, messages } = await agentOf(provider).session().prompt("2 + 3?");
      expect(text).toBe("Five.");
      expect(messages[2]).toMatchObject({
        role: "tool",
        content: [{ tool: "add", is_error: false, content: [{ text: "5" }] }],
      });
      expect(JSON.stringify(server.requests[1])).toContain("call_1");
    });

    test("a tool that does not exist, and arguments that are not what it takes, are results", async () => {
      server.script([
        { toolCall: { id: "call_1", name: "nope", args: "{}" } },
        { toolCall: { id: "call_2", name: "add", args: '{"a": 1' } },
        { text: "Sorry." },
      ]);
      const { text, messages } = await agentOf(provider).session().prompt("go");
      expect(text).toBe("Sorry.");
      expect(
        messages.filter((message) => message.role === "tool").map((message) => message.content[0]),
      ).toMatchObject([{ is_error: true }, { is_error: true }]);
    });

    test.each([
      ["429 with Retry-After", { status: 429, headers: { "retry-after": "0" } }],
      ["500", { status: 500 }],
      ["529", { status: 529 }],
    ])("%s is tried again", async (_name, reply) => {
      server.script([reply, reply, hello]);
      expect((await agentOf(provider).session().prompt("hi")).text).toBe("Hello there.");
      expect(server.requests).toHaveLength(3);
    });

    test("401 is not tried again, and its text is told to nobody", async () => {
      server.script([{ status: 401, message: "key test-key is wrong" }]);
      const error = await agentOf(provider)
        .session()
        .prompt("hi")
        .then(String, (reason: unknown) => reason);
      expect(error).toMatchObject({
        code: "model_error",
        message: "The model's provider answered with status 401.",
      });
      expect(server.requests).toHaveLength(1);
    });

    test("a stream that is cut, wherever it is, gives the whole answer or an error, never half of one", async () => {
      const chunks = protocol.chunks(hello).length;
      for (let cutAfter = 0; cutAfter < chunks; cutAfter += 1) {
        server.script([{ answer: hello, cutAfter }, hello]);
        const session = agentOf(provider).session();
        expect((await session.prompt("hi")).text).toBe("Hello there.");
        expect(await session.history()).toHaveLength(2);
      }
    });

    test("a tool call that is cut off is never run", async () => {
      const call = { toolCall: { id: "call_1", name: "add", args: '{"a": 2, "b": 3}' } };
      const chunks = protocol.chunks(call).length;
      for (let cutAfter = 0; cutAfter < chunks - 2; cutAfter += 1) {
        server.script([{ answer: call, cutAfter }, { text: "Never mind." }]);
        const { messages } = await agentOf(provider).session().prompt("go");
        expect(messages.filter((message) => message.role === "tool")).toHaveLength(0);
      }
    });

    test("a stream that falls silent is given up", async () => {
      server.script([{ answer: hello, silentAfter: 1 }, hello]);
      expect((await agentOf(provider, { idleTimeoutMs: 150 }).session().prompt("hi")).text).toBe(
        "Hello there.",
      );
      expect(server.requests).toHaveLength(2);
    });

    test("garbage is an error that says so, and the session goes on", async () => {
      server.script([
        { garbage: "<html>gateway</html>" },
        { garbage: "data: {oops\n\n" },
        { garbage: "" },
        { garbage: "data: 1\n\n" },
        hello,
      ]);
      const session = agentOf(provider).session();
      await expect(session.prompt("hi")).rejects.toMatchObject({ code: "model_error" });
      expect((await session.prompt("again")).text).toBe("Hello there.");
    });

    test("an answer of a megabyte is read whole", async () => {
      const text = "word ".repeat(200_000).trim();
      server.script([{ text }]);
      expect((await agentOf(provider).session().prompt("hi")).text).toHaveLength(text.length);
    });
  },
);
