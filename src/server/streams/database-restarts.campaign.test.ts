import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { KitClient } from "../../client/kit-client.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { rounds } from "../../testing/campaign.suite.ts";
import { type PostgresServer, startPostgres } from "../../testing/postgres-server.ts";
import { openWay, type WayToServer } from "../../testing/way-to-server.ts";
import { type ServedNode, serveNode } from "../testing/serve-cluster.ts";

let postgres: PostgresServer;
let way: WayToServer;
let node: ServedNode;

beforeAll(async () => {
  postgres = await startPostgres();
  way = await openWay(new URL(postgres.url));
  node = await serveNode({ url: way.url, schema: "restarts" });
}, 60_000);
afterAll(async () => {
  await node?.close();
  await way?.close();
  await postgres?.stop();
});

/** Returns what was said from the last request on: an attempt that finds the answer in the session makes no request. */
function saidBy(events: readonly KitEvent[]): string {
  const start = events.findLastIndex(({ type }) => type === "turn_request");
  return events
    .slice(start)
    .map((event) => (event.type === "text_delta" ? event.text : ""))
    .join("");
}

function checkOnce(events: readonly KitEvent[]): void {
  const indexes = events.map(({ index }) => index);
  expect(indexes).toEqual([...new Set(indexes)].sort((left, right) => left - right));
}

test("calls of the client that it can repeat or resume ride out restarts of the database", async () => {
  const client = new KitClient({ baseUrl: node.url });
  const isOver = { now: false };
  let key = 0;
  const words = "word ".repeat(20);
  const repeat = async (work: (key: string) => Promise<void>): Promise<number> => {
    for (let done = 0; ; done += 1) {
      if (isOver.now) return done;
      key += 1;
      await work(`key-${key}`);
    }
  };
  const stop = new AbortController();
  const followedEvents: KitEvent[] = [];
  const listening = (async () => {
    const options = { signal: stop.signal };
    for await (const event of client.agents.events("echo", { id: "followed" }, options))
      followedEvents.push(event);
  })().catch((error: unknown) => {
    if (!stop.signal.aborted) throw error;
  });
  const working = [
    repeat(async (idempotencyKey) => {
      const message = `calmly ${idempotencyKey} ${words}`;
      const stream = client.agents.stream("echo", { id: "followed", message }, { idempotencyKey });
      const events: KitEvent[] = [];
      for await (const event of stream) events.push(event);
      const { text } = await stream.result();
      expect(text).toBe(message);
      // The node drops the events of its last moments before it loses the lease; the answer can be stored by then.
      expect(saidBy(events)).toBe(message.slice(0, saidBy(events).length));
      checkOnce(events);
    }),
    repeat(async (idempotencyKey) => {
      const message = `calmly ${idempotencyKey} ${words}`;
      const { text } = await client.agents.invoke("echo", { id: "invoked", message }, { idempotencyKey });
      expect(text).toBe(message);
    }),
    repeat(async (idempotencyKey) => {
      const stream = client.workflows.stream("talking", { lines: 5 }, { idempotencyKey });
      const events: KitEvent[] = [];
      for await (const event of stream) events.push(event);
      expect((await stream.result()).result).toBe("done");
      checkOnce(events);
      await sleep(50);
    }),
    repeat(async (idempotencyKey) => {
      const { result } = await client.workflows.invoke("strict", { n: 2 }, { idempotencyKey });
      expect(result).toEqual({ doubled: 4 });
      await sleep(50);
    }),
  ];
  const failed = Promise.all([listening, ...working]).catch((error: unknown) => error);
  const outages = rounds(1, 15);
  for (let outage = 0; outage < outages; outage += 1) {
    await sleep(2_000);
    await way.close();
    await sleep(300 + 150 * (outage % 5));
    await way.open();
    const error = await Promise.race([failed, sleep(0)]);
    if (error !== undefined) throw error;
  }
  isOver.now = true;
  const done = await Promise.all(working);
  const lastEvent = async (after: number): Promise<number | undefined> =>
    (await node.service.engine.events.read("agent/echo/followed", { after })).at(-1)?.index;
  await expect.poll(() => lastEvent(followedEvents.at(-1)?.index ?? 0)).toBe(undefined);
  stop.abort();
  await listening;
  checkOnce(followedEvents);
  expect(Math.min(...done)).toBeGreaterThan(0);
  const history = await client.agents.history("echo", { id: "followed" });
  expect(history.filter(({ role }) => role === "user")).toHaveLength(done[0] ?? 0);
}, 600_000);
