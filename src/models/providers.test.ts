import { describe, expect, test } from "vitest";
import { defineTool } from "../agents/define/tool.ts";
import type { Agent } from "../agents/harness.ts";
import { defaultModelRetryPolicy, type ModelRetryPolicy } from "../agents/turn/retry.ts";
import { providerProtocols } from "../testing/provider-server/protocols.ts";
import { providerForTests } from "../testing/provider-server/provider-for-tests.ts";
import { readAll } from "../testing/read-all.ts";
import { createTestAgent } from "../testing/test-runtime.ts";
import { createModelResolver } from "./create-model-resolver.ts";
import { createOfflineGuide } from "./offline/offline-guide.ts";

const server = providerForTests();

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

function agentOf(provider: string, over: { idleTimeoutMs?: number; retry?: ModelRetryPolicy } = {}): Agent {
  const resolveModel = createModelResolver({ env: {}, providers: server.providers });
  return createTestAgent(
    createOfflineGuide(),
    { model: `${provider}/m`, tools: [add] },
    {
      resolveModel,
      modelIdleTimeoutMs: over.idleTimeoutMs ?? 5_000,
      ...(over.retry === undefined ? {} : { retry: over.retry }),
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

    test("a provider that says when to come again is not asked before, and not at all after an abort", async () => {
      server.script([{ status: 429, headers: { "retry-after": "7" } }, hello]);
      const session = agentOf(provider, { retry: defaultModelRetryPolicy }).session();
      const stream = session.stream("hi");
      const errors: unknown[] = [];
      await readAll(stream, async (event) => {
        if (event.type !== "error") return;
        errors.push(event);
        await session.abort();
      });
      expect(errors).toMatchObject([{ will_retry: true, retry_in_ms: 7_000 }]);
      await expect(stream.result).rejects.toMatchObject({ code: "aborted" });
      expect(server.requests).toHaveLength(1);
    });

    test("401 is not tried again, and its text appears nowhere", async () => {
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

    describe.each([["between two chunks"], ["inside"], ["ended"]] as const)(
      "a stream that is cut (%s)",
      (cut) => {
        const how = cut === "between two chunks" ? {} : { how: cut };

        test("gives the whole answer or another one, wherever it is cut, and never half of one", async () => {
          const chunks = protocol.chunks(hello).length;
          for (let cutAfter = 0; cutAfter < chunks; cutAfter += 1) {
            server.script([{ answer: hello, cutAfter, ...how }, hello]);
            const session = agentOf(provider).session();
            expect((await session.prompt("hi")).text).toBe("Hello there.");
            expect(await session.history()).toHaveLength(2);
          }
        });

        test("runs no call that came in half of it", async () => {
          const call = { toolCall: { id: "call_1", name: "add", args: '{"a": 2, "b": 3}' } };
          const chunks = protocol.chunks(call).length;
          for (let cutAfter = 0; cutAfter < chunks - 2; cutAfter += 1) {
            server.script([{ answer: call, cutAfter, ...how }, { text: "Never mind." }]);
            const { messages } = await agentOf(provider).session().prompt("go");
            expect(messages.filter((message) => message.role === "tool")).toHaveLength(0);
          }
        });
      },
    );

    test.each([0, 1, 2])("a stream that falls silent after %i chunks is given up", async (silentAfter) => {
      server.script([{ answer: hello, silentAfter }, hello]);
      expect((await agentOf(provider, { idleTimeoutMs: 300 }).session().prompt("hi")).text).toBe(
        "Hello there.",
      );
      expect(server.requests).toHaveLength(2);
    });

    test.each(["data: {oops\n\n", "<html>gateway</html>", "data: 1\n\n", "\0\u{1F4A5}\n\n"])(
      "an answer that turns into garbage (%j) is asked for again",
      async (garbage) => {
        const chunks = protocol.chunks(hello).length;
        for (let garbageAfter = 0; garbageAfter < chunks - 2; garbageAfter += 1) {
          server.script([{ answer: hello, garbageAfter, garbage }, hello]);
          expect((await agentOf(provider).session().prompt("hi")).text).toBe("Hello there.");
          expect(server.requests).toHaveLength(2);
        }
      },
    );

    test("a provider that reports a failure in mid-stream is asked again, and its words appear nowhere", async () => {
      const garbage = protocol.errorChunk("key test-key is wrong");
      server.script([{ answer: hello, garbageAfter: 2, garbage }, hello]);
      expect((await agentOf(provider).session().prompt("hi")).text).toBe("Hello there.");
      server.script(Array.from({ length: 4 }, () => ({ answer: hello, garbageAfter: 2, garbage })));
      const refused = agentOf(provider).session().prompt("hi");
      await expect(refused).rejects.toMatchObject({ code: "model_error" });
      await expect(refused).rejects.not.toThrow(/test-key/);
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

    test("an answer without end is given up, and nothing of it stays", async () => {
      const more = "more ".repeat(20_000);
      for (const endless of [
        { text: more },
        { toolCall: { id: "c", name: "add", args: `{"a": "${more}"}` } },
      ]) {
        // This protocol has no pieces of arguments that could go on.
        if (provider === "google" && endless.text === undefined) continue;
        server.script([{ endless }, hello]);
        const session = agentOf(provider).session();
        await expect(session.prompt("hi")).rejects.toMatchObject({ code: "budget_exceeded" });
        expect(server.requests).toHaveLength(1);
        expect((await session.prompt("again")).text).toBe("Hello there.");
        expect(await session.history()).toHaveLength(3);
      }
    });

    test("an answer of a megabyte is read whole", async () => {
      const text = "word ".repeat(200_000).trim();
      server.script([{ text }]);
      expect((await agentOf(provider).session().prompt("hi")).text).toHaveLength(text.length);
    });
  },
);
