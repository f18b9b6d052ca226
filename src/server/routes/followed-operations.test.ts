import { afterAll, beforeAll, expect, test } from "vitest";
import { KitClient, type KitEvent } from "../../client/index.ts";
import { collectEvents } from "../testing/read-event-stream.ts";
import { serveForTests } from "../testing/serve-for-tests.ts";

let client: KitClient;
const served = serveForTests();
beforeAll(() => {
  client = new KitClient({ baseUrl: served.url });
});
afterAll(() => expect(served.errors).toEqual([]));

async function toEnd(events: AsyncIterable<KitEvent>): Promise<readonly KitEvent[]> {
  const all: KitEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

const textOf = (events: readonly KitEvent[]): string =>
  events.map((event) => (event.type === "text_delta" ? event.text : "")).join("");

test("a dispatch names its operation, which a reader follows to its end before and after it has begun", async () => {
  const sent = { id: "named", input: "calmly one two three four five six", client_id: "m-1" };
  const { operation_id } = await client.agents.dispatch("echo", sent);
  const live = await toEnd(client.agents.followOperation("echo", { id: "named", operation_id }));
  expect(live[0]).toMatchObject({
    type: "operation_start",
    operation_id,
    client_id: "m-1",
    message: sent.input,
  });
  expect(live.at(-1)).toMatchObject({ type: "operation", operation_id, is_error: false });
  expect(textOf(live)).toBe(sent.input);
  await client.agents.invoke("echo", { id: "named", message: "the next" });
  const { operations } = await client.agents.operations("echo", { id: "named" });
  expect(operations.at(-1)?.operation_id).toBe(operation_id);
  const stored = await toEnd(client.agents.followOperation("echo", { id: "named", operation_id }));
  expect([stored[0], stored.at(-1), textOf(stored)]).toEqual([live[0], live.at(-1), sent.input]);
  // The log has joined the deltas; a reader goes on after any of them.
  for (const { index } of live.slice(0, -1)) {
    const before = textOf(live.filter((event) => event.index <= index));
    const rest = await toEnd(
      client.agents.followOperation("echo", { id: "named", operation_id, after: index }),
    );
    expect(before + textOf(rest)).toBe(sent.input);
    expect(rest[0]?.index).toBeGreaterThan(index);
  }
  const { messages } = await client.agents.historyPage("echo", { id: "named" });
  expect(messages.map(({ client_id }) => client_id)).toEqual(["m-1", undefined, undefined, undefined]);
});

test("a reader that has read the end gets 204, and an operation of another instance is not found", async () => {
  const { operation_id } = await client.agents.dispatch("echo", { id: "over", input: "hello" });
  const path = `operations/${operation_id}/events`;
  const events = await collectEvents(await served.stream(`/agents/echo/over/${path}`));
  const headers = { "last-event-id": events.at(-2)?.id ?? "" };
  expect((await served.stream(`/agents/echo/over/${path}`, { headers })).status).toBe(204);
  expect((await served.stream(`/agents/echo/other/${path}`)).status).toBe(404);
  expect((await served.stream("/agents/echo/over/operations/op_none/events")).status).toBe(404);
});

test("an abort that names an operation ends it alone, also while it is queued", async () => {
  const dispatch = (input: string) => client.agents.dispatch("echo", { id: "queue", input });
  const abort = (operation_id: string, id = "queue") => client.agents.abort("echo", { id, operation_id });
  const first = await dispatch("slow");
  const queued = await dispatch("never said");
  const last = await dispatch("said");
  const follow = ({ operation_id }: { readonly operation_id: string }) =>
    toEnd(client.agents.followOperation("echo", { id: "queue", operation_id }));
  const [of_first, of_queued] = [follow(first), follow(queued)];
  expect(await abort(queued.operation_id, "another")).toBe(false);
  expect(await abort(queued.operation_id)).toBe(true);
  expect(await of_queued).toEqual([]);
  expect(await abort(first.operation_id)).toBe(true);
  expect((await of_first).map(({ type }) => type).slice(-2)).toEqual(["aborted", "operation"]);
  // A late abort of what has ended does not end what runs now.
  const held = served.echo.held(1);
  const running = await dispatch("hold");
  await held;
  expect(await abort(first.operation_id)).toBe(false);
  expect(textOf(await follow(last))).toBe("said");
  served.echo.release();
  expect((await follow(running)).at(-1)).toMatchObject({ type: "operation", is_error: false });
});

test("a dispatch takes the fields of a prompt", async () => {
  const image = { data: "aGk=", media_type: "image/png" };
  const { operation_id } = await client.agents.dispatch("echo", {
    id: "fields",
    input: "look",
    images: [image],
    thinking_level: "low",
  });
  const [start] = await toEnd(client.agents.followOperation("echo", { id: "fields", operation_id }));
  expect(start).toMatchObject({ message: "look", images: 1 });
  const refused = client.agents.dispatch("echo", {
    id: "fields",
    input: "x",
    images: [{ data: "?", media_type: "image/png" }],
  });
  await expect(refused).rejects.toMatchObject({ code: "invalid_request" });
});
