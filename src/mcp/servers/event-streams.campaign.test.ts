import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { createManualClock } from "../../testing/manual-clock.ts";
import { callTool, createSkippingClock, openServer, textOf } from "../client.suite.ts";
import type { McpClient } from "../create-mcp-client.ts";
import { type HttpMessage, oldListener, serveHttp } from "./http-server.suite.ts";

/** Counts how often streams are opened, with a clock that the test advances. */
async function reconnectsWithin(
  seconds: number,
  stream: (given: HttpMessage) => void,
): Promise<{ readonly counts: readonly number[]; readonly client: McpClient }> {
  const clock = createManualClock();
  let streams = 0;
  const { url } = await serveHttp(
    oldListener((message) => {
      if (message.message !== undefined) return false;
      streams += 1;
      stream(message);
      return true;
    }),
  );
  const client = openServer({ url }, { clock });
  await client.tools();
  await expect.poll(() => streams).toBe(1);
  const counts: number[] = [];
  for (let second = 0; second < seconds; second += 1) {
    await clock.advance(1_000);
    // Wait until the server has seen it.
    await new Promise((resolve) => setTimeout(resolve, 5));
    counts.push(streams);
  }
  return { counts, client };
}

test.each([
  ["at once", "retry: 0\n\n"],
  ["after an event with an id", "retry: 0\nid: 1\ndata:\n\n"],
  [
    "after a notification",
    'retry: 0\nid: 2\ndata: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n',
  ],
])(
  "a stream that the server closes %s is reopened after longer and longer pauses, up to a limit",
  async (_, said) => {
    const { counts, client } = await reconnectsWithin(400, ({ reply }) => {
      reply.writeHead(200, { "content-type": "text/event-stream" }).end(said);
    });
    expect(counts[19]).toBeLessThanOrEqual(6);
    expect(counts.at(-1)).toBe(9);
    expect(client.problems()).toEqual([
      {
        server: "s",
        message:
          "kit no longer waits for its notifications, so changes of its tools are noticed only after the next connection. It closes their stream repeatedly.",
      },
    ]);
    expect(textOf(await callTool(client, "plain"))).toBe("done");
  },
  30_000,
);

test("a stream that is refused or invalid is not reopened", async () => {
  for (const [status, type, reported] of [
    [401, "text/plain", "It requires authorization (HTTP 401)"],
    [403, "text/plain", "It denies access (HTTP 403)"],
    [404, "text/plain", "It answered with HTTP 404."],
    [503, "text/plain", "It has an internal error (HTTP 503)"],
    // By the protocol, the server sends no notifications.
    [405, "text/plain", ""],
    [200, "text/html", "its response is not an event stream"],
  ] as const) {
    const { counts, client } = await reconnectsWithin(30, ({ reply }) => {
      reply.writeHead(status, { "content-type": type }).end("retry: 0\n\n");
    });
    expect(counts.at(-1)).toBe(1);
    expect(
      client
        .problems()
        .map(({ message }) => message)
        .join(),
    ).toContain(reported);
    expect(client.problems()).toHaveLength(reported === "" ? 0 : 1);
    await client.close();
  }
});

test("the stream of a call is resumed while the call waits, and closed with it", async () => {
  let streams = 0;
  let resumed: HttpMessage["reply"] | undefined;
  const listener = oldListener(({ message, reply, request }) => {
    if (message?.method !== "tools/call" && request.headers["last-event-id"] === undefined) return false;
    reply.writeHead(200, { "content-type": "text/event-stream" });
    streams += 1;
    reply.write(`retry: 0\nid: ${streams}\ndata:\n\n`);
    if (streams < 4) reply.end();
    else resumed = reply;
    return true;
  });
  const { url } = await serveHttp(listener);
  const client = openServer({ url, timeout_seconds: 3 }, { clock: createSkippingClock() });
  const output = await callTool(client, "plain");
  expect(textOf(output)).toContain(
    "It did not answer within 3 seconds. It is unknown whether the call was done",
  );
  expect(streams).toBe(4);
  await expect.poll(() => resumed?.closed).toBe(true);
});

test("streams of calls that timed out are not reopened", async () => {
  const clock = createManualClock();
  let streams = 0;
  const { url } = await serveHttp(
    oldListener(({ message, reply, request }) => {
      if (message?.method !== "tools/call" && request.headers["last-event-id"] === undefined) return false;
      streams += 1;
      reply.writeHead(200, { "content-type": "text/event-stream" }).end("retry: 0\nid: 1\ndata:\n\n");
      return true;
    }),
  );
  const client = openServer({ url, timeout_seconds: 2 }, { clock });
  await callTool(client, "plain");
  expect(streams).toBe(1);
  await clock.advance(600_000);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(streams).toBe(1);
});

test("an answer on a reopened stream is accepted", async () => {
  const { url } = await serveHttp(
    oldListener(({ message, reply, request }) => {
      const isCall = message?.method === "tools/call";
      if (!isCall && request.headers["last-event-id"] === undefined) return false;
      reply.writeHead(200, { "content-type": "text/event-stream" });
      if (isCall) lastId = message?.id;
      const result = { content: [{ type: "text", text: "later" }] };
      const answer = JSON.stringify({ jsonrpc: "2.0", id: lastId, result });
      reply.end(isCall ? "id: 1\ndata:\n\n" : `data: ${answer}\n\n`);
      return true;
    }),
  );
  let lastId: number | undefined;
  const client = openServer({ url }, { clock: createSkippingClock() });
  expect(textOf(await callTool(client, "plain"))).toBe("later");
});

test("a call whose stream cannot be resumed has an unknown outcome and is not repeated", async () => {
  let calls = 0;
  const { url } = await serveHttp(
    oldListener(({ message, reply, request }) => {
      if (message?.method === "tools/call") calls += 1;
      else if (request.headers["last-event-id"] === undefined) return false;
      if (message === undefined) reply.writeHead(403).end();
      else reply.writeHead(200, { "content-type": "text/event-stream" }).end("id: 1\ndata:\n\n");
      return true;
    }),
  );
  const client = openServer({ url }, { clock: createSkippingClock() });
  const output = await callTool(client, "plain");
  expect(output).toMatchObject({ isError: true, outcome: "unknown" });
  expect(textOf(output)).toContain("It denies access (HTTP 403).");
  expect(calls).toBe(1);
});

test("a call whose answer never begins times out, and its connection is closed", async () => {
  let closed = false;
  const { url } = await serveHttp(
    oldListener(({ message, request }) => {
      if (message?.method !== "tools/call") return false;
      request.socket.once("close", () => {
        closed = true;
      });
      request.socket.write("HTTP/1.1 200 OK\r\nx-more: ");
      return true;
    }),
  );
  const client = openServer({ url, timeout_seconds: 2 });
  expect(textOf(await callTool(client, "plain"))).toContain("It did not answer within 2 seconds.");
  await expect.poll(() => closed).toBe(true);
});

test.each([
  ["events", 'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n'],
  ["blank lines", "\n"],
  ["comments", ":\n"],
  ["one endless event", "data: x"],
])("a server that floods its stream with %s is cut off and named", async (_, text) => {
  const { url } = await serveHttp(
    oldListener(({ message, reply }) => {
      if (message !== undefined) return false;
      reply.writeHead(200, { "content-type": "text/event-stream" });
      const chunk = text.repeat(4_096);
      const write = (): void => {
        while (!reply.destroyed && reply.write(chunk));
        reply.once("drain", write);
      };
      write();
      return true;
    }),
  );
  const client = openServer({ url }, { clock: createManualClock() });
  await client.tools();
  await expect
    .poll(() => client.problems()[0]?.message)
    .toMatch(/It flooded a stream of events|It sent a message of more than 10 MB/);
});

/** Opens a client of a server that answers the GET of notifications with raw bytes. */
async function clientOfRawStream(write: (socket: Socket) => void): Promise<McpClient> {
  const { url } = await serveHttp(
    oldListener(({ message, request }) => {
      if (message !== undefined) return false;
      write(request.socket);
      return true;
    }),
  );
  const client = openServer({ url }, { clock: createManualClock() });
  await client.tools();
  return client;
}

test.each([102, 103, 199])("endless interim responses (%i) disconnect a server", async (status) => {
  const client = await clientOfRawStream((socket) => {
    const chunk = `HTTP/1.1 ${status} Soon\r\nlink: </a>\r\n\r\n`.repeat(64);
    const write = (): void => {
      if (!socket.destroyed) socket.write(chunk, () => setImmediate(write));
    };
    write();
  });
  await expect
    .poll(() => client.problems()[0]?.message)
    .toContain("It sent too many interim responses (HTTP 1xx).");
});

test.each([
  ["a stream of events", "text/event-stream", ":"],
  ["an answer in JSON", "application/json", " "],
])("%s in HTTP chunks of one byte cuts a server off before it costs much", async (_, type, byte) => {
  let chunks = 0;
  const { url } = await serveHttp(
    oldListener(({ message, request: { socket } }) => {
      if (message !== undefined && (type !== "application/json" || message.method !== "tools/list"))
        return false;
      socket.write(`HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ntransfer-encoding: chunked\r\n\r\n`);
      const write = (): void => {
        if (socket.destroyed) return;
        chunks += 8_192;
        socket.write(`1\r\n${byte}\r\n`.repeat(8_192), () => setImmediate(write));
      };
      write();
      return true;
    }),
  );
  const client = openServer({ url }, { clock: createManualClock() });
  await client.tools();
  await expect
    .poll(() => client.problems()[0]?.message)
    .toContain("It sent an answer in too many small pieces.");
  expect(chunks).toBeLessThan(1_000_000);
});

test("a few interim responses are allowed", async () => {
  const client = await clientOfRawStream((socket) => {
    socket.write("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".repeat(10));
    socket.write("HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n");
  });
  expect(textOf(await callTool(client, "plain"))).toBe("done");
  expect(client.problems()).toEqual([]);
});

test("a stream of notifications that cannot be opened is reported, and calls still work", async () => {
  const client = await clientOfRawStream((socket) => {
    socket.write(`HTTP/1.1 200 OK\r\n${"x-more: y\r\n".repeat(10_000)}`);
  });
  await expect
    .poll(() => client.problems()[0]?.message)
    .toMatch(/^kit no longer waits for its notifications, .* The headers of its response are too long\.$/);
  expect(textOf(await callTool(client, "plain"))).toBe("done");
});
