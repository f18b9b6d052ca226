import fc from "fast-check";
import { afterAll, expect, test, vi } from "vitest";
import type { KitEvent } from "../protocol/event.ts";
import { serveForTests } from "../server/testing/serve-for-tests.ts";
import { type CuttingProxy, openCuttingProxy } from "../testing/cutting-proxy.ts";
import { KitClient } from "./kit-client.ts";

const retry = { baseDelayMs: 1, maxDelayMs: 5 };
let proxy: CuttingProxy | undefined;

const served = serveForTests();
afterAll(async () => {
  await proxy?.close();
});

async function clientBehind(cuts: readonly number[], attempts = 10): Promise<KitClient> {
  await proxy?.close();
  proxy = await openCuttingProxy(served.port, cuts);
  return new KitClient({ baseUrl: proxy.url, retry: { ...retry, attempts } });
}

async function indexesOf(events: AsyncIterable<KitEvent>): Promise<readonly number[]> {
  const indexes: number[] = [];
  for await (const { index } of events) indexes.push(index);
  return indexes;
}

function upTo(last: number): readonly number[] {
  return Array.from({ length: last }, (_, index) => index + 1);
}

test("a run's stream that is cut at any point yields every event once, in order, and its result", async () => {
  const direct = new KitClient({ baseUrl: served.url });
  const { run_id } = await direct.workflows.invoke("talking", { lines: 40 });
  const expected = await indexesOf(direct.runs.stream(run_id));
  expect(expected).toEqual(upTo(expected.length));
  const cuts = fc.array(fc.integer({ min: 1, max: 6_000 }), { minLength: 8, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(cuts, async (bytes) => {
      const client = await clientBehind(bytes);
      const stream = client.runs.stream(run_id);
      expect(await indexesOf(stream)).toEqual(expected);
      expect((await stream.result()).result).toBe("done");
    }),
    { numRuns: 15 },
  );
});

test("a workflow stream from its start survives cuts", async () => {
  const client = await clientBehind([]);
  const direct = new KitClient({ baseUrl: served.url });
  const stream = client.workflows.stream("waiting");
  const indexes: number[] = [];
  for await (const event of stream) {
    indexes.push(event.index);
    if (event.type !== "run_start") continue;
    proxy?.cutAll();
    await direct.runs.signal(event.run_id ?? "", { name: "word", payload: 1 });
  }
  expect(indexes).toEqual(upTo(indexes.length));
  expect((await stream.result()).result).toEqual({ said: 1 });
});

test("waiting for a workflow's result survives cuts, and a final failure names the run's id", async () => {
  const direct = new KitClient({ baseUrl: served.url });
  const untilBegun = (): Promise<string> =>
    vi.waitUntil(
      async () => {
        const { runs } = await direct.runs.list({ workflow: "waiting" });
        return runs.find(({ ended_at }) => ended_at === undefined)?.run_id ?? "";
      },
      { timeout: 60_000 },
    );
  const patient = await clientBehind([]);
  const result = patient.workflows.invoke("waiting", {}, { idempotencyKey: "patient" });
  const first = await untilBegun();
  proxy?.cutAll();
  await direct.runs.signal(first, { name: "word", payload: 2 });
  expect(await result).toEqual({ status: "completed", run_id: first, result: { said: 2 } });

  const hasty = (await clientBehind([], 1)).workflows.stream("waiting");
  for await (const { run_id } of hasty) {
    proxy?.cutAll();
    await expect(hasty.result()).rejects.toMatchObject({ code: "unavailable", meta: { run_id } });
  }
});

test("an instance's stream continues after cuts while new events arrive", async () => {
  const client = await clientBehind([900, 1_700, 600]);
  const direct = new KitClient({ baseUrl: served.url });
  const seen: KitEvent[] = [];
  const reading = (async () => {
    let operations = 0;
    for await (const event of client.agents.events("echo", { id: "followed" })) {
      seen.push(event);
      if (event.type === "operation") operations += 1;
      if (operations === 6) return;
    }
  })();
  for (let prompt = 1; prompt <= 6; prompt += 1) {
    await direct.agents.invoke("echo", { id: "followed", message: `words of prompt ${prompt}` });
    proxy?.cutAll();
  }
  await reading;
  const texts = seen.map((event) => (event.type === "text_delta" ? event.text : `|${event.type}|`)).join("");
  const replies = [...texts.matchAll(/words of prompt (\d)/g)].map(([, prompt]) => Number(prompt));
  expect(replies).toEqual(upTo(6));
  expect(texts.match(/\|turn_end\|/g)).toHaveLength(6);
});

test("a broken prompt stream fails, but with an idempotency key it still returns its result", async () => {
  const message = "a few words, and then some more, ".repeat(20);
  const plain = await clientBehind([2_500]);
  await expect(indexesOf(plain.agents.stream("echo", { id: "cut", message }))).rejects.toMatchObject({
    code: "unavailable",
  });
  const withKey = await clientBehind([2_500, 3_000]);
  const stream = withKey.agents.stream("echo", { id: "kept", message }, { idempotencyKey: "k-1" });
  const indexes = await indexesOf(stream);
  expect(indexes).toEqual(indexes.toSorted((left, right) => left - right));
  expect(new Set(indexes).size).toBe(indexes.length);
  expect((await stream.result()).text).toBe(message);
  expect(await withKey.agents.history("echo", { id: "kept" })).toHaveLength(2);
});

test("a stream fails after as many consecutive attempts as its retry policy allows", async () => {
  const client = await clientBehind(
    Array.from({ length: 50 }, () => 0),
    3,
  );
  await expect(indexesOf(client.agents.events("echo", { id: "1" }))).rejects.toMatchObject({
    code: "unavailable",
  });
  expect(proxy?.made).toBe(3);
});

test("a started stream is resumed after more failures than a call is retried", async () => {
  const direct = new KitClient({ baseUrl: served.url });
  const { run_id } = await direct.workflows.invoke("talking", { lines: 20 });
  const restart = [2_000, ...Array.from({ length: 7 }, () => 0)];
  const patient = await clientBehind(restart, 3);
  const indexes = await indexesOf(patient.runs.stream(run_id));
  expect(indexes).toEqual(upTo(indexes.length));
  expect(proxy?.made).toBe(9);
  for (const [attempts, reconnects, made] of [
    [3, undefined, 1 + 9],
    [3, 2, 1 + 2],
    [1, undefined, 1],
    [1, 2, 1 + 2],
  ] as const) {
    await proxy?.close();
    proxy = await openCuttingProxy(served.port, [2_000, ...Array.from({ length: 50 }, () => 0)]);
    const policy = { ...retry, attempts, ...(reconnects === undefined ? {} : { reconnects }) };
    const client = new KitClient({ baseUrl: proxy.url, retry: policy });
    await expect(indexesOf(client.runs.stream(run_id))).rejects.toMatchObject({ code: "unavailable" });
    expect([attempts, reconnects, proxy.made]).toEqual([attempts, reconnects, made]);
  }
});

test("a waiting stream continues after its connection broke", async () => {
  const client = await clientBehind([]);
  const direct = new KitClient({ baseUrl: served.url });
  const events = client.agents.events("echo", { id: "waiting" })[Symbol.asyncIterator]();
  await direct.agents.invoke("echo", { id: "waiting", message: "one" });
  expect((await events.next()).value.index).toBe(1);
  proxy?.cutAll();
  await direct.agents.invoke("echo", { id: "waiting", message: "two" });
  expect((await events.next()).value.index).toBe(2);
  await events.return?.();
});

test("a stream of a deleted and recreated instance continues with the new instance's first event", async () => {
  const client = new KitClient({ baseUrl: served.url, retry });
  await client.agents.invoke("echo", { id: "again", message: "the first" });
  const indexes: number[] = [];
  for await (const { index, type } of client.agents.events("echo", { id: "again" })) {
    indexes.push(index);
    if (type !== "idle") continue;
    if (indexes.indexOf(1) < indexes.lastIndexOf(1)) break;
    await client.agents.delete("echo", { id: "again" });
    await client.agents.invoke("echo", { id: "again", message: "the second has some more words to say" });
  }
  // Deltas of a turn that is over may have become one event by then.
  const second = indexes.lastIndexOf(1);
  for (const part of [indexes.slice(0, second), indexes.slice(second)]) {
    expect(part[0]).toBe(1);
    expect(part).toEqual([...new Set(part)].sort((left, right) => left - right));
  }
});
