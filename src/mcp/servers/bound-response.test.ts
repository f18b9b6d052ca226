import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { limits } from "../limits.ts";
import { boundResponse } from "./bound-response.ts";

async function fetchFrom(listener: RequestListener): Promise<Response> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return boundResponse(await fetch(`http://127.0.0.1:${port}/`));
}

test("a response of usual size is passed on unchanged, with its status and headers", async () => {
  const response = await fetchFrom((_, reply) => {
    reply.writeHead(418, { "content-type": "application/json", "x-more": "yes" }).end('{"a":1}');
  });
  expect(response.status).toBe(418);
  expect(response.headers.get("x-more")).toBe("yes");
  expect(await response.json()).toEqual({ a: 1 });
});

test("an endless body is cut at the limit", async () => {
  const response = await fetchFrom((_, reply) => {
    reply.writeHead(200, { "content-type": "application/json" });
    const write = (): void => {
      while (reply.write("x".repeat(65_536)));
      reply.once("drain", write);
    };
    write();
  });
  await expect(response.text()).rejects.toThrow("more than");
});

test("a stream of events can exceed the limit, but one event cannot", async () => {
  const event = `data: ${"x".repeat(1_000_000)}\r\n\r\n`;
  const many = await fetchFrom((_, reply) => {
    reply.writeHead(200, { "content-type": "text/event-stream" });
    for (let count = 0; count < 14; count += 1)
      reply.write(count % 2 === 0 ? event : event.replaceAll("\r", ""));
    reply.end();
  });
  expect((await many.text()).length).toBeGreaterThan(1.3 * limits.messageBytes);
  const one = await fetchFrom((_, reply) => {
    reply.writeHead(200, { "content-type": "text/event-stream" });
    for (let count = 0; count < 25; count += 1) reply.write(`data: ${"x".repeat(1_000_000)}\n`);
    reply.end("\n\n");
  });
  await expect(one.text()).rejects.toThrow("more than");
});

test("a stream of single bytes without a pause is cut early", async () => {
  let bytes = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      bytes += 1;
      controller.enqueue(Uint8Array.of(58));
    },
  });
  const response = boundResponse(new Response(endless, { headers: { "content-type": "text/event-stream" } }));
  await expect(response.body?.pipeTo(new WritableStream())).rejects.toThrow("It flooded a stream of events.");
  expect(bytes).toBeLessThan(10_000);
});

test("small pieces reach the reader together, each event as soon as it is complete", async () => {
  const text = "data: one\n\ndata: two\n\n:late";
  let [at, given] = [0, 0];
  const slow = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = text[at++];
      if (piece === undefined) controller.close();
      else controller.enqueue(new TextEncoder().encode(piece));
    },
  });
  const response = boundResponse(new Response(slow, { headers: { "content-type": "text/event-stream" } }));
  const pieces: string[] = [];
  for await (const piece of response.body ?? []) {
    pieces.push(new TextDecoder().decode(piece));
    given = Math.max(given, at);
    if (pieces.length === 1) expect(given).toBeLessThan("data: one\n\ndata: t".length);
  }
  expect(pieces).toEqual(["data: one\n\n", "data: two\n\n", ":late"]);
});

test("other work runs while a long chunk of a stream is read", async () => {
  const events = new TextEncoder().encode('data: {"a":1}\n\n'.repeat(4_000));
  const response = boundResponse(new Response(events, { headers: { "content-type": "text/event-stream" } }));
  const reader = response.body?.getReader();
  let turns = 0;
  const timer = setInterval(() => {
    turns += 1;
  }, 0);
  onTestFinished(() => clearInterval(timer));
  const sizes: number[] = [];
  const turnsBetween: number[] = [];
  for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) {
    sizes.push(part.value.length);
    turnsBetween.push(turns);
    // Runs until the chunk is read.
    for (const until = performance.now() + 5; performance.now() < until; );
  }
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(events.length);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(limits.reads.bytes);
  expect(new Set(turnsBetween).size).toBe(sizes.length);
});

test.each([
  ["small events", `data: ${"x".repeat(10_000)}\n\n`.repeat(10)],
  ["blank lines", "\n".repeat(4_096)],
  ["carriage returns", "\r".repeat(4_096)],
  ["comments", ":\n".repeat(4_096)],
  ["tiny events", "data:\n\n".repeat(4_096)],
])("a stream of %s without a pause is cut off", async (_, event) => {
  const flood = await fetchFrom((__, reply) => {
    reply.writeHead(200, { "content-type": "text/event-stream" });
    const write = (): void => {
      while (!reply.destroyed && reply.write(event));
      reply.once("drain", write);
    };
    write();
  });
  await expect(flood.body?.pipeTo(new WritableStream())).rejects.toThrow("It flooded a stream of events.");
});
