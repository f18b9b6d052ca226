import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { shardOf } from "../../src/engine/postgres/shards.ts";
import { collectEvents, readEventStream } from "../../src/server/testing/read-event-stream.ts";
import { openSocket } from "../../src/server/testing/socket-client.ts";
import { answerTo } from "../faults/service/model-server.ts";
import { postgresEngine } from "./harness/engines.ts";
import { type Kit, Kits } from "./harness/kits.ts";

let cluster: Kits;
let front: Kit;
let count = 0;

beforeAll(async () => {
  cluster = await Kits.start(postgresEngine, 3);
  front = cluster.kits[0] as Kit;
});

afterEach(() => cluster.heal());

afterAll(() => cluster?.stop());

/** Returns the ports of the nodes that own the shards. */
async function owners(): Promise<ReadonlyMap<number, number>> {
  const { rows } = await cluster.database.query(
    "SELECT shard, address FROM kit.shards JOIN kit.nodes USING (node)",
  );
  return new Map(rows.map(({ shard, address }) => [Number(shard), Number(new URL(String(address)).port)]));
}

/** Returns an instance that the front node does not own, whose effects take `ms`. */
async function ownedElsewhere(ms: number): Promise<{ readonly path: string; readonly owner: Kit }> {
  const ports = await owners();
  for (;;) {
    count += 1;
    const instance_id = `hop${count}-${ms}ms`;
    const port = ports.get(shardOf({ agent: "worker", instance_id }));
    const owner = cluster.kits.find((kit) => kit !== front && kit.process.port === port);
    if (owner !== undefined) return { path: `/agents/worker/${instance_id}`, owner };
  }
}

function ask(path: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  return fetch(`${front.process.url}${path}`, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", ...headers },
  });
}

const sse = { accept: "text/event-stream" };

/** Waits for the first effect of an instance. */
async function begun(path: string): Promise<void> {
  const line = path.split("/").at(-1);
  await cluster.until(() => cluster.effects().some((effect) => effect.line === line));
}

test("a prompt without a key ends with a retryable error when its owner is killed", async () => {
  for (const headers of [{}, sse]) {
    const { path, owner } = await ownedElsewhere(3_000);
    const reply = ask(path, { message: "#1" }, headers);
    await begun(path);
    await cluster.kill(owner);
    const answer = await reply;
    const text = await answer.text();
    expect(text).toContain("The machine that worked on this has stopped");
    expect(text).toContain('"type":"unavailable"');
    if (headers !== sse) expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "1"]);
    // The session continues on another node.
    const again = await ask(`/agents/worker/${path.split("/").at(-1)}`, { message: "#2", session: "next" });
    expect(await again.text()).toContain(answerTo("#2"));
    await cluster.heal();
  }
});

test("a prompt with a key is finished on another node when its owner is killed, and its events continue", async () => {
  const { path, owner } = await ownedElsewhere(1_500);
  const live = await fetch(`${front.process.url}${path}/events`, { headers: sse });
  const seen: string[] = [];
  const reading = (async () => {
    for await (const { event } of readEventStream(live)) {
      seen.push(event);
      if (event === "operation") return;
    }
  })();
  const reply = ask(path, { message: "#1" }, { ...sse, "idempotency-key": "one" });
  await begun(path);
  await cluster.kill(owner);
  const events = await collectEvents(await reply);
  expect(events.at(-1)).toMatchObject({ event: "result", data: { result: { text: answerTo("#1") } } });
  await reading;
  expect(seen[0]).toBe("operation_start");
});

test("a prompt whose owner is frozen fails, and the next prompt is answered by another node", async () => {
  const { path, owner } = await ownedElsewhere(15_000);
  const began = Date.now();
  const reply = ask(path, { message: "#1" });
  await begun(path);
  cluster.freeze(owner);
  expect((await reply).status).toBe(503);
  expect(Date.now() - began).toBeLessThan(20_000);
  const other = await ownedElsewhere(0);
  expect((await ask(other.path, { message: "#1" })).status).toBe(200);
});

test("a prompt at a node that is stopped still finishes", async () => {
  const { path, owner } = await ownedElsewhere(700);
  const reply = ask(path, { message: "#1" }, sse);
  await begun(path);
  const ended = cluster.end(owner);
  const events = await collectEvents(await reply);
  expect(events.at(-1)).toMatchObject({ event: "result", data: { result: { text: answerTo("#1") } } });
  expect(await ended).toBe(0);
  const again = await ask(path, { message: "#2" });
  expect(await again.text()).toContain(answerTo("#2"));
});

test("a WebSocket stays open when the node that owns its instance is killed", async () => {
  const { path, owner } = await ownedElsewhere(2_000);
  const client = await openSocket(`${front.process.url}${path}`);
  await client.until("ready");
  client.send({ type: "prompt", request_id: "a", message: "#1" });
  await begun(path);
  await cluster.kill(owner);
  expect((await client.until("error")).at(-1)).toMatchObject({
    request_id: "a",
    error: { type: "unavailable" },
  });
  client.send({ type: "prompt", request_id: "b", session: "other", message: "#1" });
  expect((await client.until("result")).at(-1)).toMatchObject({
    request_id: "b",
    result: { text: answerTo("#1") },
  });
  client.socket.close();
});

test("a node that does not own a run streams its events to the end, whichever other node is killed", async () => {
  const started = await ask("/workflows/steps", { number: 900 + count, steps: 6, ms: 300 });
  const { run_id } = (await started.json()) as { run_id: string };
  const ports = await owners();
  const owner = cluster.kits.find(({ process }) => process.port === ports.get(shardOf({ run_id })));
  const reader = cluster.kits.find((kit) => kit !== owner) as Kit;
  const live = fetch(`${reader.process.url}/runs/${run_id}/stream`, { headers: sse });
  await delay(700);
  if (owner !== undefined) await cluster.kill(owner);
  const events = await collectEvents(await live);
  expect(events.at(0)?.event).toBe("run_start");
  expect(events.at(-1)?.event).toBe("result");
  expect(events.filter(({ event }) => event === "run_end")).toHaveLength(1);
});
