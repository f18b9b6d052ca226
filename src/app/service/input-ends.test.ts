import { expect, onTestFinished, test } from "vitest";
import { createEmbeddedEngine } from "../../engine/embedded/create-embedded-engine.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import { agentStream } from "../../protocol/session-name.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { Instances } from "../runtime/instances.ts";
import { endOperation } from "./input-ends.ts";

const key = { agent: "desk", instance_id: "1", session: "default" };
const stream = agentStream(key.agent, key.instance_id);
const timestamp = new Date().toISOString();
const start = {
  ...key,
  type: "operation_start",
  operation_kind: "prompt",
  operation_id: "op_1",
  timestamp,
} as const;
const input: SessionEntry = {
  version: 1,
  type: "message",
  operation_id: "op_1",
  message: { role: "user", content: [{ type: "text", text: "Hello" }], timestamp },
};
const died = { type: "internal_error", message: "The process ended during the last attempt." } as const;
const failed = { id: "dispatch_1", fence: 1, attempts: 3, status: "failed", error: died } as const;
const cancelled = { id: "dispatch_1", fence: 1, attempts: 1, status: "cancelled" } as const;

/** A process that ends inputs, over the stores that an earlier one has left. */
async function open(events: readonly Pick<KitEvent, "type">[], entries: readonly SessionEntry[]) {
  const engine = createEmbeddedEngine({ folder: undefined });
  onTestFinished(() => engine.drain());
  await engine.start({ dispatch: async () => undefined, run: async () => undefined });
  const store = new InMemorySessionStore();
  if (entries.length > 0) store.append({ key, expected: 0, entries });
  for (const [at, event] of events.entries())
    engine.events.append(stream, { ...event, index: at + 1 } as KitEvent);
  const instances = new Instances(() => Promise.reject(new Error("The module of the agent is broken.")));
  const observed: string[] = [];
  const observers = { all: new Set([({ type }: KitEvent) => void observed.push(type)]), tracing: undefined };
  const record = (name: string) => (event: KitEvent) => engine.events.append(name, event);
  const parts = { store, events: engine.events, instances, observers, record };
  return {
    observed,
    end: (how: typeof failed | typeof cancelled) => endOperation(parts, how, { ...key, input: "Hello" }),
    events: async () => (await engine.events.read(stream)).slice(events.length),
    entries: () => store.read(key).slice(entries.length),
  };
}

test("an operation that its process has not ended ends once, without the code of its agent", async () => {
  const { end, events, entries, observed } = await open([start], [input]);
  await end(failed);
  await end(failed);
  const context = { ...key, operation_id: "op_1" };
  expect(await events()).toMatchObject([
    { ...context, type: "error", index: 2, error: died, will_retry: false },
    { ...context, type: "operation", index: 3, is_error: true },
    { ...context, type: "idle", index: 4 },
  ]);
  const value = { status: "failed", error: died, attempts: 3, dispatch_id: "dispatch_1" };
  expect(entries()).toMatchObject([{ name: "operation_end", operation_id: "op_1", value }]);
  expect(observed).toEqual(["error", "operation", "idle"]);
});

test("a process that is killed after the note leaves the events to the next one", async () => {
  const first = await open([start], [input]);
  await first.end(cancelled);
  const next = await open([start], [input, ...first.entries()]);
  await next.end(cancelled);
  expect(next.entries()).toEqual([]);
  expect((await next.events()).map(({ type }) => type)).toEqual(["aborted", "operation", "idle"]);
});

test("an operation whose start was lost with its process ends all the same", async () => {
  const { end, events, entries } = await open([], [input]);
  await end(cancelled);
  expect((await events()).map(({ type }) => type)).toEqual(["aborted", "operation", "idle"]);
  expect(entries()).toMatchObject([{ value: { status: "aborted" } }]);
});

test("an input whose operation never began, has ended, or is in a deleted session gets no note", async () => {
  const unbegun = await open([], []);
  await unbegun.end(failed);
  expect([await unbegun.events(), unbegun.entries()]).toEqual([[], []]);
  const ended = await open([start, { ...start, type: "operation" }], [input]);
  await ended.end(failed);
  expect([await ended.events(), ended.entries()]).toEqual([[], []]);
  const deleted = await open([start], []);
  await deleted.end(cancelled);
  expect((await deleted.events()).map(({ type }) => type)).toEqual(["aborted", "operation", "idle"]);
  expect(deleted.entries()).toEqual([]);
});
