import { beforeAll, expect, test } from "vitest";
import { KitClient } from "../../client/kit-client.ts";
import { serveForTests } from "../testing/serve-for-tests.ts";

let client: KitClient;
const served = serveForTests({ limits: { streamMs: 60 } });
beforeAll(() => {
  client = new KitClient({ baseUrl: served.url, retry: { baseDelayMs: 1, maxDelayMs: 5 } });
});

test("at its limit, a stream of an instance's events ends with a comment, and a reader resumes after its last event", async () => {
  const path = "/agents/echo/limited/events";
  await client.agents.invoke("echo", { id: "limited", message: "one" });
  const text = await (await served.stream(path)).text();
  expect(text).toMatch(/\n: closing\n\n$/);
  const read: number[] = [];
  const again = (async () => {
    for await (const event of client.agents.events("echo", { id: "limited" })) {
      read.push(event.index);
      if (event.type === "operation" && event.index > 10) return;
    }
  })();
  await new Promise((resolve) => setTimeout(resolve, 150));
  await client.agents.invoke("echo", { id: "limited", message: "two" });
  await client.agents.invoke("echo", { id: "limited", message: "three" });
  await again;
  expect(read).toEqual(read.map((_, index) => index + 1));
});

test("a prompt with a key returns its result after its stream has ended; the stream of one without a key is never cut", async () => {
  const withKey = client.agents.stream("echo", { id: "held", message: "hold" }, { idempotencyKey: "k-1" });
  const plain = served.stream("/agents/echo/held-too", { body: { message: "hold" } });
  const results = Promise.all([withKey.result(), plain.then((reply) => reply.text())]);
  await served.echo.held(2);
  await new Promise((resolve) => setTimeout(resolve, 150));
  served.echo.release();
  const [{ text }, stream] = await results;
  expect(text).toBe("hold");
  expect(stream).toMatch(/event: result\n/);
  expect(stream).not.toMatch(/: closing/);
});
