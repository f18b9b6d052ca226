import fc from "fast-check";
import { expect, test } from "vitest";
import type { KitEvent } from "../../protocol/event.ts";
import type { Message } from "../../protocol/message.ts";
import { noUsage } from "../../protocol/read-records.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { chooseCut } from "./compact.ts";

const small = { contextWindowTokens: 2_000, reserveTokens: 500, keepRecentTokens: 300 };
const long = "word ".repeat(400);

function answerOrSummary(
  prompt: readonly { readonly role: string; readonly content: unknown }[],
  index: number,
) {
  const isSummary = JSON.stringify(prompt[0]).includes("a colleague needs");
  return isSummary ? { text: `SUMMARY ${index}` } : { text: `answer ${index}` };
}

test("a history above the threshold is compacted before the turn, and the log keeps every message", async () => {
  const store = new InMemorySessionStore();
  const model = createScriptedModel((call, index) => answerOrSummary(call.prompt, index));
  const events: KitEvent[] = [];
  const agent = createTestAgent(
    model,
    { compaction: small, onEvent: (event) => events.push(event) },
    { store },
  );
  const session = agent.session();
  for (let turn = 0; turn < 6; turn += 1) await session.prompt(`${turn} ${long}`);
  expect(events.filter((event) => event.type === "compaction_end").map((event) => event.is_error)).toContain(
    false,
  );
  const history = await session.history();
  expect(history[0]).toMatchObject({
    source: "summary",
    content: [{ text: expect.stringContaining("SUMMARY") }],
  });
  expect(history.length).toBeLessThan(8);
  const log = store.read({ agent: "tester", instance_id: "1", session: "default" });
  expect(log.filter((entry) => entry.type === "message")).toHaveLength(12);
});

test("if the model can only quote, the conversation itself replaces the summary", async () => {
  const model = createScriptedModel(() => ({ text: "I quote. \u{1F4D6}" }));
  const resolveModel = async (name: string) =>
    ({ name, model, structuredOutput: "never", quotesOnly: true }) as const;
  const events: KitEvent[] = [];
  const profile = { compaction: small, onEvent: (event: KitEvent) => events.push(event) };
  const session = createTestAgent(model, profile, { resolveModel }).session();
  for (let turn = 0; turn < 6; turn += 1) await session.prompt(`QUESTION-${turn} ${"\u{1F600}".repeat(300)}`);
  const [summary] = await session.history();
  const text = JSON.stringify(summary?.content);
  expect(summary).toMatchObject({ source: "summary" });
  expect(text).toMatch(/QUESTION-\d.*\[assistant\] I quote/);
  expect(text.isWellFormed() && !/\\ud[89a-f]/i.test(text)).toBe(true);
  expect(events.filter((event) => event.type === "turn" && event.purpose === "compaction")).toEqual([]);
});

test("a compacted session is the same after it is opened again", async () => {
  const store = new InMemorySessionStore();
  const model = createScriptedModel((call, index) => answerOrSummary(call.prompt, index));
  const session = createTestAgent(model, { compaction: small }, { store }).session();
  for (let turn = 0; turn < 9; turn += 1) await session.prompt(`${turn} ${long}`);
  const reopened = createTestAgent(createScriptedModel([]), { compaction: small }, { store }).session();
  expect(await reopened.history()).toEqual(await session.history());
});

test("a prompt that the provider calls too long is compacted and sent again, once", async () => {
  let refused = 0;
  const model = createScriptedModel((call, index) => {
    const answer = answerOrSummary(call.prompt, index);
    if (answer.text.startsWith("answer") && JSON.stringify(call.prompt).includes("old news")) {
      refused += 1;
      throw Object.assign(new Error("prompt is too long: 210000 tokens > 200000 maximum"), {
        statusCode: 400,
      });
    }
    return answer;
  });
  const agent = createTestAgent(model, {
    compaction: { ...small, contextWindowTokens: 100_000, reserveTokens: 0 },
  });
  const session = agent.session();
  await session.prompt("hello");
  await expect(session.prompt(`old news ${long}`)).rejects.toMatchObject({ code: "context_overflow" });
  expect(refused).toBe(2);
});

test("compact() shortens on demand, and returns false if there is nothing to shorten", async () => {
  const model = createScriptedModel((call, index) => answerOrSummary(call.prompt, index));
  const session = createTestAgent(model, {
    compaction: { ...small, contextWindowTokens: 100_000 },
  }).session();
  expect(await session.compact()).toBe(false);
  for (let turn = 0; turn < 3; turn += 1) await session.prompt(`${turn} ${long}`);
  expect(await session.compact({ focus: "numbers" })).toBe(true);
  expect((await session.prompt("and now?")).text).toMatch(/answer/);
});

/** A text whose message has the given number of tokens: 4 for the message, a quarter for each character. */
const textOf = (tokens: number): string => "x".repeat((tokens - 4) * 4);

// The threshold is the window of 128,000 tokens minus 16,384 for the answer.
test.each([
  [111_616, 0],
  [111_617, 1],
])("by default a history of %i tokens is compacted %i times", async (tokens, times) => {
  const events: KitEvent[] = [];
  const model = createScriptedModel(() => ({ text: "ok", usage: { input: tokens - 100, output: 50 } }));
  const agent = createTestAgent(model, { onEvent: (event) => events.push(event) });
  const session = agent.session();
  await session.prompt(textOf(30_000));
  await session.prompt(textOf(50));
  expect(events.filter(({ type }) => type === "compaction_end")).toHaveLength(times);
});

// Ten exchanges of 2,000 tokens are kept; with one more token, the oldest exchange is dropped.
test.each([
  [1_000, 20],
  [1_001, 18],
])("by default 20,000 tokens are kept: of answers, the last of %i, %i messages", async (last, kept) => {
  const model = createScriptedModel((_, index) => ({ text: textOf(index === 14 ? last : 1_000) }));
  const session = createTestAgent(model).session();
  for (let turn = 0; turn < 15; turn += 1) await session.prompt(textOf(1_000));
  expect(await session.compact()).toBe(true);
  const [summary, ...rest] = await session.history();
  expect(summary).toMatchObject({ source: "summary" });
  expect(rest).toHaveLength(kept);
});

const user = (text: string): Message => ({ role: "user", content: [{ type: "text", text }], timestamp: "" });
const exchange = (calls: number, text: string): Message[] => [
  user(text),
  {
    role: "assistant",
    content: [
      { type: "text", text },
      ...Array.from(
        { length: calls },
        (_, index) => ({ type: "tool_call", tool_call_id: `c${index}`, tool: "t", args: {} }) as const,
      ),
    ],
    timestamp: "",
    model: "m",
    usage: noUsage,
    finish_reason: "stop",
  },
  ...(calls === 0
    ? []
    : [
        {
          role: "tool",
          content: Array.from(
            { length: calls },
            (_, index) =>
              ({
                type: "tool_result",
                tool_call_id: `c${index}`,
                tool: "t",
                content: [{ type: "text", text }],
                is_error: false,
              }) as const,
          ),
          timestamp: "",
        } as const,
      ]),
];

test("a compaction never separates a tool call from its result", () => {
  const exchanges = fc.array(fc.tuple(fc.nat(3), fc.string({ maxLength: 400 })), {
    minLength: 1,
    maxLength: 20,
  });
  fc.assert(
    fc.property(exchanges, fc.nat(2_000), (list, limit) => {
      const messages = list.flatMap(([calls, text]) => exchange(calls, text));
      const cut = chooseCut(messages, limit);
      expect(cut).toBeLessThan(messages.length);
      const kept = messages.slice(cut);
      expect(kept[0]?.role).not.toBe("tool");
    }),
  );
});
