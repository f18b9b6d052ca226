import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { collectEvents } from "../testing/read-event-stream.ts";
import { type ServedService, serveService } from "../testing/serve-service.ts";

let served: ServedService;
beforeAll(async () => {
  served = await serveService();
});
afterAll(async () => {
  expect(served.errors).toEqual([]);
  await served.close();
});

describe("agents", () => {
  test("are listed with their files and triggers; a broken one is not", async () => {
    const { status, body } = await served.send("/agents");
    expect(status).toBe(200);
    expect(body).toEqual({
      agents: [
        { name: "careful", path: "src/agents/careful.ts", triggers: { webhook: true } },
        { name: "echo", path: "src/agents/echo.ts", triggers: { webhook: true } },
        { name: "hidden", path: "src/agents/hidden.ts", triggers: { webhook: false } },
      ],
    });
  });

  test("answer a prompt, and go on with its session", async () => {
    const first = await served.send("/agents/echo/a", { body: { message: "hello there" } });
    expect(first.status).toBe(200);
    expect(first.body).toEqual({
      result: {
        text: "hello there",
        usage: expect.objectContaining({ input: 3, output: 2, total_tokens: 5 }),
        model: { id: expect.any(String) },
        metadata: expect.objectContaining({ operation_id: expect.stringMatching(/^op_/) }),
      },
    });
    await served.send("/agents/echo/a", { body: { payload: { message: "again" } } });
    const { body } = await served.send("/agents/echo/a/history");
    expect(body.messages.map((one: { role: string }) => one.role)).toEqual([
      "user",
      "assistant",
      "user",
      "assistant",
    ]);
    expect(body.messages[0]).toEqual({
      role: "user",
      content: [{ type: "text", text: "hello there" }],
      timestamp: expect.any(String),
    });
  });

  test("answer as a stream of events that ends with the result", async () => {
    const reply = await served.stream("/agents/echo/b", { body: { message: "one two three" } });
    expect([reply.status, reply.headers.get("content-type")]).toEqual([
      200,
      "text/event-stream; charset=utf-8",
    ]);
    const events = await collectEvents(reply);
    const deltas = events.filter(({ event }) => event === "text_delta");
    expect(deltas.map(({ data }) => data.text)).toEqual(["one ", "two ", "three"]);
    expect(events[0]?.event).toBe("operation_start");
    expect(events.at(-1)).toEqual({
      id: undefined,
      event: "result",
      data: { result: expect.objectContaining({ text: "one two three" }) },
    });
    const ids = events.slice(0, -1).map(({ id, data }) => [Number(id), data.index]);
    expect(ids.every(([id, index]) => id === index)).toBe(true);
  });
});
