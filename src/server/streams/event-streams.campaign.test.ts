import { once } from "node:events";
import { connect } from "node:net";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { KitEvent } from "../../protocol/event.ts";
import { collectEvents, type ReceivedEvent, readEventStream } from "../testing/read-event-stream.ts";
import { serveForTest, serveForTests } from "../testing/serve-for-tests.ts";
import { serveService } from "../testing/serve-service.ts";

const served = serveForTests();

/** An instance's events, read with a connection that breaks after each of `pieces`. */
async function readInPieces(
  path: string,
  pieces: readonly number[],
  isLast: (event: KitEvent) => boolean,
): Promise<readonly KitEvent[]> {
  const seen: KitEvent[] = [];
  let over = false;
  for (let piece = 0; !over; piece += 1) {
    const after = seen.at(-1)?.index;
    const reply = await served.stream(path, {
      headers: after === undefined ? {} : { "last-event-id": String(after) },
    });
    let left = pieces[piece % pieces.length] ?? 1;
    for await (const event of readEventStream(reply)) {
      seen.push(event.data);
      left -= 1;
      over = isLast(event.data);
      if (left === 0 || over) break;
    }
  }
  return seen;
}

/** The content of events, however deltas are joined; the others with their indexes. */
function saidBy(events: readonly KitEvent[]): string {
  return events.map((event) => ("text" in event ? event.text : `|${event.index} ${event.type}|`)).join("");
}

/** After how many events a connection breaks, again and again. */
const pieces = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 8 });

describe("the events of an instance", () => {
  test("arrive without loss or repetition, wherever the connection breaks", async () => {
    const path = "/agents/echo/resumed";
    for (let turn = 0; turn < 5; turn += 1) {
      await served.send(path, { body: { message: `turn ${turn} has some words to say` } });
    }
    const last = await served.service.engine.events.last("agent/echo/resumed");
    const all = await allEvents(`${path}/events`);
    expect(all.at(-1)?.index).toBe(last);
    await fc.assert(
      fc.asyncProperty(pieces, async (sizes) => {
        const seen = await readInPieces(`${path}/events`, sizes, ({ index }) => index === last);
        expect(saidBy(seen)).toBe(saidBy(all));
      }),
      { numRuns: 15 },
    );
  });

  test("are complete for readers who connect and disconnect while they are emitted", async () => {
    let round = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(pieces, { minLength: 1, maxLength: 4 }), async (readers) => {
        round += 1;
        const path = `/agents/echo/live-${round}`;
        const reading = readers.map((sizes) => {
          let turns = 0;
          const isLast = ({ type }: KitEvent): boolean => type === "idle" && ++turns === 3;
          return readInPieces(`${path}/events`, sizes, isLast);
        });
        for (const turn of ["one", "two", "three"]) {
          await served.send(path, { body: { message: `${turn}, with a few more words to say` } });
        }
        const fullText = saidBy(await allEvents(`${path}/events`));
        expect(fullText).toContain("three, with a few more words to say");
        for (const seen of await Promise.all(reading)) expect(saidBy(seen)).toBe(fullText);
      }),
      { numRuns: 20 },
    );
  });

  test("can be read for one session", async () => {
    await served.send("/agents/echo/two", { body: { message: "a", session: "a" } });
    await served.send("/agents/echo/two", { body: { message: "b", session: "b" } });
    const all = await allEvents("/agents/echo/two/events");
    const ofB = all.filter(({ session }) => session === "b");
    expect(ofB.length).toBeLessThan(all.length);
    const reply = await served.stream("/agents/echo/two/events?session=b");
    const seen: number[] = [];
    for await (const event of readEventStream(reply)) {
      seen.push(event.data.index);
      if (seen.length === ofB.length) break;
    }
    expect(seen).toEqual(ofB.map(({ index }) => index));
  });

  test("cannot be read from an invalid index", async () => {
    for (const query of ["after=-1", "after=1.5", "after=x", "session=a%2Fb", "colour=red"]) {
      const wrong = await served.send(`/agents/echo/1/events?${query}`);
      expect([query, wrong.status]).toEqual([query, 400]);
    }
    const wrong = await served.send("/agents/echo/1/events", { headers: { "last-event-id": "one" } });
    expect(wrong.body.error.meta.issues[0].path).toBe("headers.last-event-id");
  });

  test("of a deleted instance end, and those of a new instance of its name are read from the beginning", async () => {
    const path = "/agents/echo/deleted";
    await served.send(path, { body: { message: "before" } });
    const following = await served.stream(`${path}/events`);
    expect((await served.send(path, { method: "DELETE" })).body).toEqual({ deleted: true });
    expect(await following.text()).toMatch(/event: idle\n.*\n\nid:\n\n$/);
  });

  test("a HEAD request to a stream opens none", async () => {
    const reply = await fetch(`${served.url}/agents/echo/1/events`, { method: "HEAD" });
    expect([reply.status, reply.headers.get("content-type")]).toEqual([
      200,
      "text/event-stream; charset=utf-8",
    ]);
  });
});

async function allEvents(path: string): Promise<readonly KitEvent[]> {
  const events: KitEvent[] = [];
  const last = await served.service.engine.events.last(`agent/echo/${path.split("/")[3]}`);
  for await (const event of readEventStream(await served.stream(path))) {
    events.push(event.data);
    if (event.data.index === last) break;
  }
  return events;
}

test("a user's text cannot end a field of an event", async () => {
  const message = "line1\nevent: pwned\ndata: x\r\rid: 9\u2028\n\nevent: pwned\ndata: {}\n\n";
  const events = await collectEvents(await served.stream("/agents/echo/hostile", { body: { message } }));
  expect(events.map(({ event }) => event)).not.toContain("pwned");
  expect(events.at(-1)?.data.result.text).toBe(message);
});

/** Asks for a stream over a socket of its own, and reads nothing that it is not told to. */
async function openRaw(path: string, body?: unknown) {
  const socket = connect({ host: "127.0.0.1", port: served.port });
  await once(socket, "connect");
  socket.pause();
  const text = body === undefined ? "" : JSON.stringify(body);
  socket.write(
    `${body === undefined ? "GET" : "POST"} ${path} HTTP/1.1\r\nHost: 127.0.0.1:${served.port}\r\n` +
      `Accept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
  );
  return socket;
}

test("a slow client gets every event, with deltas joined, and delays no other client", async () => {
  const socket = await openRaw("/agents/echo/slow-reader", { message: "long" });
  const target = { agent: "echo", instance_id: "slow-reader" };
  for await (const event of served.service.events(target, {})) if (event.type === "operation") break;
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  await new Promise<void>((resolve) => {
    socket.on("data", () => text.includes("event: result") && resolve());
    socket.resume();
  });
  socket.destroy();
  const deltas = text.split("event: text_delta\ndata: ").slice(1);
  const said = deltas.map((part) => JSON.parse(part.slice(0, part.indexOf("\n"))).text).join("");
  expect(said.match(/word \d+/g)).toHaveLength(2_000);
  expect(deltas.length).toBeLessThan(1_000);
});

test("a client that does not read is disconnected, and its prompt is aborted", async () => {
  const small = await serveForTest({ limits: { unreadBytes: 10_000 } });
  const reply = await small.stream("/agents/echo/much", { body: { message: "long" } });
  const events = await collectEvents(reply);
  expect(events.at(-1)).toMatchObject({ event: "error", data: { error: { type: "aborted" } } });
});

describe("a stream", () => {
  test("sends a heartbeat when there is nothing else to send", async () => {
    const quick = await serveForTest({ limits: { heartbeatMs: 20 } });
    const reply = await quick.stream("/agents/echo/quiet/events");
    const reader = reply.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (text.length < 2 * ": alive\n\n".length) text += (await reader?.read())?.value;
    expect(text).toMatch(/^(?:: alive\n\n){2,}$/);
    await reader?.cancel();
  });

  test("beyond the limit is asked to retry later, and an ended stream frees a slot", async () => {
    const small = await serveForTest({ limits: { eventStreams: 1 } });
    const first = await small.stream("/agents/echo/1/events");
    const second = await small.send("/agents/echo/1/events");
    expect([second.status, second.headers.get("retry-after")]).toEqual([503, "5"]);
    const prompt = await small.send("/agents/echo/1", {
      body: { message: "x" },
      headers: { accept: "text/event-stream" },
    });
    expect(prompt.status).toBe(503);
    await first.body?.cancel();
    const events = await retried(() => small.stream("/agents/echo/1", { body: { message: "x" } }));
    expect(events.at(-1)?.event).toBe("result");
  });
});

test("a streamed prompt with an invalid Idempotency-Key takes no slot", async () => {
  const small = await serveForTest({ limits: { eventStreams: 1 } });
  const refused = await small.send("/agents/echo/1", {
    body: { message: "x" },
    headers: { accept: "text/event-stream", "idempotency-key": "x".repeat(129) },
  });
  expect(refused.status).toBe(400);
  expect((await small.stream("/agents/echo/1", { body: { message: "x" } })).status).toBe(200);
});

describe("with keys, a principal", () => {
  const keys = { first: "first-key-of-sixteen", second: "second-key-of-sixteen" };
  const as = (client: keyof typeof keys): { readonly headers: Record<string, string> } => ({
    headers: { authorization: `Bearer ${keys[client]}` },
  });

  test("has a limited share of the streams, including those of prompts and runs, so that others can connect", async () => {
    const shared = await serveForTest({
      access: { apiKeys: Object.values(keys) },
      limits: { eventStreams: 6 },
    });
    const own = [];
    for (const id of [1, 2, 3]) own.push(await shared.stream(`/agents/echo/${id}/events`, as("first")));
    expect(own.map(({ status }) => status)).toEqual([200, 200, 200]);
    const refused = await shared.send("/agents/echo/4/events", as("first"));
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "5"]);
    expect(refused.body).toMatchObject({
      error: {
        type: "too_many_requests",
        message: "You have 3 open streams, the most that one principal may have.",
        meta: { scope: "principal", open: 3 },
      },
    });
    const prompt = await shared.send("/agents/echo/1", {
      body: { message: "x" },
      headers: { ...as("first").headers, accept: "text/event-stream" },
    });
    expect(prompt.status).toBe(429);
    // A refused request has begun no work, and takes no place.
    const other = await shared.stream("/agents/echo/1/events", as("second"));
    expect(other.status).toBe(200);
    await other.body?.cancel();
    await own[0]?.body?.cancel();
    const again = await retried(() =>
      shared.stream("/agents/echo/9", { body: { message: "x" }, ...as("first") }),
    );
    expect(again.at(-1)?.event).toBe("result");
  });
});

/** Asks until it is not told to come again. */
async function retried(ask: () => Promise<Response>): Promise<readonly ReceivedEvent[]> {
  for (;;) {
    const reply = await ask();
    if (reply.status === 200) return collectEvents(reply);
    await reply.body?.cancel();
  }
}

test("a closing server ends streams that can be resumed, and lets a prompt finish", async () => {
  const closing = await serveService();
  const following = await closing.stream("/agents/echo/1/events");
  const held = closing.stream("/agents/echo/1", { body: { message: "hold" } });
  await closing.echo.held(1);
  const prompt = await held;
  const closed = closing.close();
  expect(await following.text()).toMatch(/: closing\n\n$/);
  closing.echo.release();
  expect((await collectEvents(prompt)).at(-1)).toMatchObject({ event: "result" });
  await closed;
});

test("a thousand idle streams stay open, and all of them get an event", async () => {
  const readers = await Promise.all(
    Array.from({ length: 1_000 }, async () => {
      const socket = await openRaw("/agents/echo/crowd/events");
      let text = "";
      const received = new Promise<void>((resolve) => {
        socket.on("data", (chunk: Buffer) => {
          text += chunk.toString();
          if (text.includes("event: idle")) resolve();
        });
      });
      const opened = once(socket, "data");
      socket.resume();
      await opened;
      return { socket, received };
    }),
  );
  expect((await served.send("/agents/echo/crowd", { body: { message: "all" } })).status).toBe(200);
  await Promise.all(readers.map(({ received }) => received));
  for (const { socket } of readers) socket.destroy();
});
