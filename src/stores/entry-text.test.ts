import fc from "fast-check";
import { expect, test } from "vitest";
import type { SessionEntry } from "../protocol/session-entry.ts";
import { decodeEntry, encodeEntry } from "./entry-text.ts";

const text = fc.string({ unit: "binary" });
const count = fc.nat();
const price = fc.option(
  fc.double({ min: 0, noDefaultInfinity: true, noNaN: true }).map((value) => value + 0),
);
const textPart = fc.record({ type: fc.constant("text"), text });
const imagePart = fc.record({ type: fc.constant("image"), media_type: text, data: text });
const userContent = fc.array(fc.oneof(textPart, imagePart));
const answerContent = fc.array(
  fc.oneof(
    textPart,
    fc.record({ type: fc.constant("tool_call"), tool_call_id: text, tool: text, args: fc.jsonValue() }),
  ),
);
const toolContent = fc.array(
  fc.record({
    type: fc.constant("tool_result"),
    tool_call_id: text,
    tool: text,
    content: userContent,
    is_error: fc.boolean(),
  }),
);
// Fields that a newer kit or a user of the store may have added.
const unknown = fc.dictionary(fc.constantFrom("mood", "2", "__other"), fc.jsonValue(), { maxKeys: 1 });
const plus = (knownFields: fc.Arbitrary<object>): fc.Arbitrary<object> =>
  fc.tuple(knownFields, unknown).map(([fields, unknownFields]) => ({ ...unknownFields, ...fields }));

const cost = fc.record({ input: price, output: price, cache_read: price, cache_write: price, total: price });
const usage = fc.record(
  {
    input: count,
    output: count,
    cache_read: count,
    cache_write: count,
    total_tokens: count,
    cost: fc.oneof(plus(cost), cost),
    reasoning: count,
  },
  { requiredKeys: ["input", "output", "cache_read", "cache_write", "total_tokens", "cost"] },
);
const message = fc.oneof(
  fc.record(
    {
      role: fc.constant("user"),
      content: userContent,
      timestamp: text,
      source: fc.constantFrom("summary", "repair"),
    },
    { requiredKeys: ["role", "content", "timestamp"] },
  ),
  fc.record({ role: fc.constant("tool"), content: toolContent, timestamp: text }),
  fc.record({
    role: fc.constant("assistant"),
    content: answerContent,
    timestamp: text,
    model: text,
    finish_reason: fc.constantFrom("stop", "tool-calls", "length"),
    usage: fc.oneof(plus(usage), usage),
  }),
);
const entry = fc.oneof(
  plus(
    fc.record({
      version: fc.constant(1),
      type: fc.constant("message"),
      operation_id: text,
      message: fc.oneof(plus(message), message),
    }),
  ),
  fc.record({
    version: fc.constant(1),
    type: fc.constant("note"),
    name: text,
    value: fc.jsonValue(),
    timestamp: text,
  }),
) as fc.Arbitrary<unknown> as fc.Arbitrary<SessionEntry>;

test("every entry is read as it was written, also with unknown fields", () => {
  fc.assert(
    fc.property(entry, (written) => {
      expect(decodeEntry(encodeEntry(written))).toEqual(JSON.parse(JSON.stringify(written)));
    }),
  );
});

test("a message takes less space than its JSON, and an entry stored as JSON can still be read", () => {
  const written: SessionEntry = {
    version: 1,
    type: "message",
    operation_id: "op_1",
    message: { role: "tool", content: [], timestamp: "2026-11-20T10:00:00.000Z" },
  };
  expect(encodeEntry(written).length).toBeLessThan(JSON.stringify(written).length * 0.6);
  expect(decodeEntry(JSON.stringify(written))).toEqual(written);
});

test("arguments of a call and values of notes may be absent, as JSON leaves undefined out", () => {
  for (const stored of [
    '{"version":1,"type":"message","operation_id":"op_1","message":{"role":"assistant","content":[{"type":"tool_call","tool_call_id":"c","tool":"x"}],"timestamp":"t","model":"a/1","finish_reason":"stop","usage":{"input":1,"output":1,"cache_read":0,"cache_write":0,"total_tokens":2,"cost":{"input":null,"output":null,"cache_read":null,"cache_write":null,"total":null}}}}',
    '{"version":1,"type":"note","name":"n","timestamp":"t"}',
  ])
    expect(() => decodeEntry(stored)).not.toThrow();
});

test("an entry of an unknown version is refused with a hint", () => {
  for (const stored of ['{"version":2,"type":"message"}', '{"version":7}', '[3,"user"]']) {
    expect(() => decodeEntry(stored)).toThrow(
      expect.objectContaining({ code: "unavailable", hint: expect.stringContaining("Update kit") }),
    );
  }
});

test.each([
  "",
  "{",
  "null",
  "7",
  '"text"',
  "[]",
  "[2]",
  '[2,"user"]',
  '[2,"user","op_1","2026-11-20T10:00:00.000Z"]',
  '[2,"assistant","op_1","2026-11-20T10:00:00.000Z",[]]',
  '[2,"unknown","op_1","2026-11-20T10:00:00.000Z",[]]',
  '{"version":1}',
  '{"version":1,"type":"message"}',
  '{"version":1,"type":"message","message":{"role":"user"}}',
  '{"version":1,"type":"message","operation_id":"op_1","message":{"role":"tool","content":[{"type":"text","text":"x"}],"timestamp":"t"}}',
  '{"version":1,"type":"message","operation_id":"op_1","message":{"role":"user","content":[{"type":"text"}],"timestamp":"t"}}',
  '{"version":1,"type":"message","operation_id":"op_1","message":{"role":"user","content":[],"timestamp":"t","source":"someone"}}',
  '{"version":1,"type":"compaction"}',
  '{"version":1,"type":"other"}',
])("a damaged entry, %s, is said to be one", (text) => {
  expect(() => decodeEntry(text)).toThrow(
    expect.objectContaining({ code: "unavailable", message: expect.stringContaining("is damaged") }),
  );
});

test("an answer with reasoning tokens is stored as a list too", () => {
  const cost = { input: 1, output: 1, cache_read: 0, cache_write: 0, total: 2 };
  const counts = { input: 1, output: 9, cache_read: 0, cache_write: 0, total_tokens: 10, cost, reasoning: 7 };
  const entry: SessionEntry = {
    version: 1,
    type: "message",
    operation_id: "op_1",
    message: {
      role: "assistant",
      content: [],
      timestamp: "t",
      model: "a/1",
      finish_reason: "stop",
      usage: counts,
    },
  };
  expect(encodeEntry(entry)).toMatch(/^\[2,/);
  expect(decodeEntry(encodeEntry(entry))).toEqual(entry);
});
