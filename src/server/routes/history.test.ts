import { afterAll, beforeAll, expect, test } from "vitest";
import { KitClient } from "../../client/index.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { HistoryMessage } from "../../protocol/prompt.ts";
import { readEventStream } from "../testing/read-event-stream.ts";
import { serveForTest, serveForTests } from "../testing/serve-for-tests.ts";

let client: KitClient;
const served = serveForTests();
beforeAll(() => {
  client = new KitClient({ baseUrl: served.url });
});
afterAll(() => expect(served.errors).toEqual([]));

const textOf = ({ content }: HistoryMessage): string => content.map(({ text }) => text ?? "").join("");

/** The conversation as a reader of both sees it: `user: text`, `assistant: text`. */
function toLines(messages: readonly HistoryMessage[], events: readonly KitEvent[]): readonly string[] {
  const lines = messages.map((message) => `${message.role}: ${textOf(message)}`);
  let answer = "";
  for (const event of events) {
    if (event.type === "operation_start") lines.push(`user: ${event.message}`);
    if (event.type === "text_delta") answer += event.text;
    if (event.type === "turn_end") lines.push(`assistant: ${answer}`);
    if (event.type === "turn_end") answer = "";
  }
  return answer === "" ? lines : [...lines, `assistant: ${answer}`];
}

/** The events after an index, up to the last that there is by then. */
async function eventsAfter(id: string, after: number, until: number): Promise<readonly KitEvent[]> {
  const seen: KitEvent[] = [];
  if (after >= until) return seen;
  for await (const event of readEventStream(
    await served.stream(`/agents/echo/${id}/events?after=${after}`),
  )) {
    seen.push(event.data);
    if (event.data.index >= until) break;
  }
  return seen;
}

test("a history is read in pages, newest first, each message once, with the ids of its operation", async () => {
  for (const message of ["one", "two", "three", "four"])
    await served.send("/agents/echo/paged", { body: { message } });
  const newest = await client.agents.historyPage("echo", { id: "paged", limit: 3 });
  expect(newest.messages.map(textOf)).toEqual(["three", "four", "four"]);
  expect(newest.event_index).toBe(await served.service.engine.events.last("agent/echo/paged"));
  const older = await client.agents.historyPage("echo", {
    id: "paged",
    limit: 3,
    before: newest.next_before,
  });
  expect(older.messages.map(textOf)).toEqual(["two", "two", "three"]);
  expect(older.event_index).toBeUndefined();
  const oldest = await client.agents.historyPage("echo", {
    id: "paged",
    limit: 3,
    before: older.next_before,
  });
  expect(oldest.messages.map(textOf)).toEqual(["one", "one"]);
  expect(oldest.next_before).toBeUndefined();
  const all = [...oldest.messages, ...older.messages, ...newest.messages];
  expect(new Set(all.map(({ position }) => position)).size).toBe(8);
  expect(all[6]).toMatchObject({ role: "user", operation_id: all[7]?.operation_id });
  expect(all[7]).toMatchObject({ model: expect.any(String), usage: { input: 3, output: 2 } });
  expect(all.some((message) => "provider" in message)).toBe(false);
});

test("a page in the middle of an answer and the events after its index are the complete conversation", async () => {
  const id = "live";
  await served.send(`/agents/echo/${id}`, { body: { message: "before it" } });
  const under = served.send(`/agents/echo/${id}`, { body: { message: "hold" } });
  await served.echo.held(1);
  const page = await client.agents.historyPage("echo", { id });
  expect(page.messages.map(textOf)).toEqual(["before it", "before it"]);
  expect((await served.send("/sessions?agent=echo&instance_id=live")).body.sessions[0].status).toBe(
    "working",
  );
  served.echo.release();
  await under;
  const last = await served.service.engine.events.last(`agent/echo/${id}`);
  const events = await eventsAfter(id, page.event_index ?? 0, last);
  expect(toLines(page.messages, events)).toEqual([
    "user: before it",
    "assistant: before it",
    "user: hold",
    "assistant: hold",
  ]);
});

test("a page read at any time and the events after it have each text once", async () => {
  const id = "any-time";
  const texts = Array.from({ length: 12 }, (_, turn) => `turn ${turn} has some words`);
  const working = (async () => {
    for (const message of texts) await served.send(`/agents/echo/${id}`, { body: { message } });
  })();
  const pages: Awaited<ReturnType<typeof client.agents.historyPage>>[] = [];
  let over = false;
  void working.then(() => {
    over = true;
  });
  while (!over) {
    const page = await client.agents
      .historyPage("echo", { id, limit: 1_000 })
      .catch((error: { code?: string }) => {
        expect(error.code).toBe("not_found");
        return undefined;
      });
    if (page !== undefined) pages.push(page);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const last = await served.service.engine.events.last(`agent/echo/${id}`);
  const lines = texts.flatMap((text) => [`user: ${text}`, `assistant: ${text}`]);
  expect(pages.length).toBeGreaterThan(3);
  for (const { messages, event_index = 0 } of pages)
    expect(toLines(messages, await eventsAfter(id, event_index, last))).toEqual(lines);
});

test("a stream from now on has all later events, also after its connection breaks", async () => {
  const id = "from-now";
  await served.send(`/agents/echo/${id}`, { body: { message: "past" } });
  const last = await served.service.engine.events.last(`agent/echo/${id}`);
  const reply = await served.stream(`/agents/echo/${id}/events?after=now`);
  const reader = reply.body?.getReader();
  const first = new TextDecoder().decode((await reader?.read())?.value);
  expect(first).toBe(`id: ${last}\n\n`);
  await reader?.cancel();
  const seen: KitEvent[] = [];
  // The stream has begun once its head has come.
  const begun = Promise.withResolvers<void>();
  const listener = new KitClient({
    baseUrl: served.url,
    fetch: async (...input) => await fetch(...input).finally(begun.resolve),
  });
  const following = (async () => {
    for await (const event of listener.agents.events("echo", { id, after: "now" })) {
      seen.push(event);
      if (event.type === "idle") return;
    }
  })();
  await begun.promise;
  await served.send(`/agents/echo/${id}`, { body: { message: "future" } });
  await following;
  expect(seen[0]).toMatchObject({ type: "operation_start", message: "future", index: last + 1 });
});

test("an invalid page is refused, and a missing history is not found", async () => {
  for (const query of [
    "limit=0",
    "limit=1001",
    "limit=x",
    "limit=5&before=0",
    "limit=5&before=now",
    "limit=5&before=1.5",
    "page=2",
  ]) {
    const { status, body } = await served.send(`/agents/echo/paged/history?${query}`);
    expect([query, status, body.error?.type]).toEqual([query, 400, "invalid_request"]);
  }
  const none = await served.send("/agents/echo/none/history?limit=5");
  expect([none.status, none.body.error.type]).toEqual([404, "not_found"]);
  const past = await served.send("/agents/echo/paged/history?limit=5&before=1");
  expect(past.body).toEqual({ messages: [] });
  const beyond = await served.send("/agents/echo/paged/history?limit=5&before=99999");
  expect(beyond.body.messages.at(-1).content[0].text).toBe("four");
});

test("a text in an event contains no secrets of the project", async () => {
  const masked = await serveForTest({ env: { MY_API_KEY: "sk-very-secret-value-123" } });
  await masked.send("/agents/echo/1", { body: { message: "use sk-very-secret-value-123 please" } });
  const [start] = await masked.service.engine.events.read("agent/echo/1", { types: ["operation_start"] });
  expect(JSON.stringify(start)).not.toContain("sk-very-secret-value-123");
  expect(start).toMatchObject({ message: expect.stringContaining("please") });
});
