import { once } from "node:events";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { WebSocketServer } from "ws";
import type { KitEvent } from "../protocol/event.ts";
import { serveForTests } from "../server/testing/serve-for-tests.ts";
import { serveService } from "../server/testing/serve-service.ts";
import { type CuttingProxy, openCuttingProxy } from "../testing/cutting-proxy.ts";
import { standStill } from "../testing/stand-still.ts";
import { KitClient } from "./kit-client.ts";

const apiKey = "key~of/some+signs?";
let client: KitClient;
let proxy: CuttingProxy | undefined;

const served = serveForTests({ access: { apiKeys: [apiKey] } });
beforeAll(() => {
  client = new KitClient({ baseUrl: served.url, apiKey });
});
afterEach(async () => {
  await proxy?.close();
  proxy = undefined;
});

async function behindProxy(): Promise<KitClient> {
  proxy = await openCuttingProxy(served.port);
  return new KitClient({ baseUrl: proxy.url, apiKey, retry: { baseDelayMs: 1 } });
}

async function collect(events: AsyncIterable<KitEvent>): Promise<readonly KitEvent[]> {
  const all: KitEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

test("a connection carries several prompts, concurrently and one after the other", async () => {
  await using connection = await client.agents.connect("echo", { id: "talk" });
  await connection.ping();
  const prompts = ["first of one", "second of another", "third of one"].map((message, index) =>
    connection.prompt({ message, session: `s${index % 2}` }),
  );
  const texts = await Promise.all(
    prompts.map(async (prompt) => {
      const events = await collect(prompt);
      const said = events.map((event) => (event.type === "text_delta" ? event.text : "")).join("");
      return [said, (await prompt.result()).text];
    }),
  );
  expect(texts).toEqual([
    ["first of one", "first of one"],
    ["second of another", "second of another"],
    ["third of one", "third of one"],
  ]);
  expect((await connection.prompt("a text alone").result()).text).toBe("a text alone");
});

test("a failed prompt does not close its connection", async () => {
  await using connection = await client.agents.connect("echo", { id: "failing" });
  await expect(connection.prompt("fail for good").result()).rejects.toMatchObject({
    code: "context_overflow",
  });
  expect((await connection.prompt("next").result()).text).toBe("next");
});

test("a prompt is aborted if its caller stops reading or its signal fires", async () => {
  await using connection = await client.agents.connect("echo", { id: "left" });
  for await (const event of connection.prompt("slow")) if (event.type === "text_delta") break;
  const stop = new AbortController();
  const reason = new Error("enough");
  const waiting = connection.prompt({ message: "hold", session: "other" }, { signal: stop.signal }).result();
  await served.echo.held(1);
  stop.abort(reason);
  await expect(waiting).rejects.toBe(reason);
  // Both sessions are free again.
  for (const session of ["default", "other"]) {
    expect((await connection.prompt({ message: "next", session }).result()).text).toBe("next");
  }
});

test("a tool call is approved over the same connection", async () => {
  await using connection = await client.agents.connect("careful", { id: "socket" });
  const prompt = connection.prompt("pay 7");
  let ran = "";
  for await (const event of prompt) {
    if (event.type === "approval_request") {
      await connection.approve({ approval_id: event.approval_id, approved: true });
    }
    if (event.type === "tool_end") ran = event.result;
  }
  expect(ran).toBe("Paid 7 cents.");
  await expect(connection.approve({ approval_id: "approval_unknown", approved: true })).rejects.toMatchObject(
    {
      code: "not_found",
    },
  );
});

test("a broken connection fails its active prompts, and the next prompt opens a new connection", async () => {
  const behind = await behindProxy();
  await using connection = await behind.agents.connect("echo", { id: "broken" });
  const held = served.echo.held(2);
  const failing = connection.prompt("hold").result();
  await Promise.race([held, failing]);
  proxy?.cutAll();
  await expect(failing).rejects.toMatchObject({ code: "unavailable" });
  expect((await connection.prompt("again").result()).text).toBe("again");
});

test("a connection stays open in a background page, whose timers are suspended", async () => {
  // Browsers let a hidden page's timers run once a minute, and its messages come all the same.
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "Date"] });
  try {
    await using connection = await client.agents.connect("echo", { id: "hidden-page" });
    const held = served.echo.held(3);
    const waiting = connection.prompt("hold").result();
    await held;
    for (let minute = 0; minute < 3; minute += 1) {
      await connection.ping();
      vi.setSystemTime(Date.now() + 60_000);
      vi.advanceTimersToNextTimer();
    }
    served.echo.release();
    expect((await waiting).text).toBe("hold");
  } finally {
    vi.useRealTimers();
  }
});

test("a connection without any incoming data counts as broken", async () => {
  const mute = new WebSocketServer({ host: "127.0.0.1", port: 0, handleProtocols: () => "kit" });
  await once(mute, "listening");
  mute.on("connection", (socket) => socket.send('{"type":"ready"}'));
  try {
    const address = mute.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const stranded = new KitClient({ baseUrl: `http://127.0.0.1:${port}`, idleTimeoutMs: 90 });
    const connection = await stranded.agents.connect("echo", { id: "1" });
    await expect(connection.prompt("hello").result()).rejects.toMatchObject({ code: "unavailable" });
    connection.close();
  } finally {
    for (const socket of mute.clients) socket.terminate();
    mute.close();
  }
});

test("a connection stays open if the program was blocked when the reply to a ping arrived", async () => {
  const answering = new WebSocketServer({ host: "127.0.0.1", port: 0, handleProtocols: () => "kit" });
  await once(answering, "listening");
  let pings = 0;
  answering.on("connection", (socket) => {
    let prompt = "";
    socket.send('{"type":"ready"}');
    socket.on("message", (data) => {
      const frame = JSON.parse(String(data));
      if (frame.type === "prompt") prompt = frame.request_id;
      else {
        pings += 1;
        socket.send('{"type":"pong"}');
        if (pings === 1) standStill(400);
        if (pings === 3)
          socket.send(JSON.stringify({ type: "result", request_id: prompt, result: { text: "on" } }));
      }
    });
  });
  try {
    const address = answering.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const still = new KitClient({ baseUrl: `http://127.0.0.1:${port}`, idleTimeoutMs: 600 });
    await using connection = await still.agents.connect("echo", { id: "1" });
    expect((await connection.prompt("hello").result()).text).toBe("on");
  } finally {
    for (const socket of answering.clients) socket.terminate();
    answering.close();
  }
});

test("a closed connection stays closed", async () => {
  const connection = await client.agents.connect("echo", { id: "closed" });
  const held = connection.prompt("hold");
  await held[Symbol.asyncIterator]().next();
  connection.close();
  await expect(held.result()).rejects.toMatchObject({ code: "aborted" });
  await expect(connection.prompt("hello").result()).rejects.toMatchObject({ code: "aborted" });
});

test("a closed workflow connection stops following its run, and the run continues", async () => {
  const connection = await client.workflows.connect("waiting");
  const run = connection.invoke()[Symbol.asyncIterator]();
  const { value } = await run.next();
  connection.close();
  await expect(run.next()).rejects.toMatchObject({ code: "aborted" });
  await client.runs.signal(value.run_id, { name: "word", payload: 1 });
  expect(await client.runs.stream(value.run_id).result()).toMatchObject({ result: { said: 1 } });
});

test("a workflow connection starts only one run", async () => {
  await using connection = await client.workflows.connect("talking");
  const run = connection.invoke({ lines: 3 });
  const events = await collect(run);
  expect(events.filter(({ type }) => type === "log")).toHaveLength(3);
  const { run_id, result } = await run.result();
  expect(result).toBe("done");
  expect(await client.runs.get(run_id)).toMatchObject({ status: "completed" });
});

test("a run whose connection breaks is followed over HTTP to its end", async () => {
  const behind = await behindProxy();
  await using connection = await behind.workflows.connect("waiting");
  const run = connection.invoke();
  const seen: number[] = [];
  let runId = "";
  for await (const event of run) {
    seen.push(event.index);
    if (event.type !== "run_start") continue;
    runId = event.run_id ?? "";
    proxy?.cutAll();
    await client.runs.signal(runId, { name: "word", payload: "late" });
  }
  expect(seen).toEqual(Array.from({ length: seen.length }, (_, index) => index + 1));
  expect(await run.result()).toMatchObject({ run_id: runId, result: { said: "late" } });
});

test("a refused connection reports the reason", async () => {
  const stranger = new KitClient({ baseUrl: served.url, apiKey: "wrong" });
  await expect(stranger.agents.connect("echo", { id: "1" })).rejects.toMatchObject({ code: "unauthorized" });
  await expect(client.agents.connect("no-such-agent", { id: "1" })).rejects.toMatchObject({
    code: "agent_not_found",
  });
  await expect(client.workflows.connect("nothing")).rejects.toMatchObject({ code: "workflow_not_found" });
  await expect(client.agents.connect("hidden", { id: "1" })).rejects.toMatchObject({
    code: "agent_not_webhook",
  });
  await expect(client.agents.connect("echo", { id: "a/b" })).rejects.toMatchObject({
    code: "invalid_request",
  });
  const absent = new KitClient({ baseUrl: "http://127.0.0.1:1", retry: { attempts: 1 } });
  await expect(absent.agents.connect("echo", { id: "1" })).rejects.toMatchObject({ code: "unavailable" });
});

test("a server that shuts down ends the waiting calls of a connection", async () => {
  const own = await serveService();
  const connection = await new KitClient({ baseUrl: own.url }).workflows.connect("waiting");
  const run = connection.invoke();
  const events = run[Symbol.asyncIterator]();
  await events.next();
  const ended = expect(run.result()).rejects.toMatchObject({ code: "unavailable" });
  await own.close();
  await ended;
});
