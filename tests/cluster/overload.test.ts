import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { postgresEngine } from "./harness/engines.ts";
import { Kits } from "./harness/kits.ts";

let cluster: Kits;

beforeAll(async () => {
  cluster = await Kits.start(postgresEngine, 3, { toml: "concurrency = 8\nmax_waiting = 200" });
});

afterAll(() => cluster?.stop());

interface Said {
  readonly status: number;
  /** In seconds. */
  readonly retryAfter: number;
  readonly message: string;
}

/** A quarter each are dispatches and runs, and the rest prompts; each has an instance of its own. */
async function send(number: number): Promise<Said> {
  const instance = `load${number}-200ms`;
  const requests: readonly (readonly [string, object])[] = [
    [`/agents/worker/${instance}/dispatch`, { input: "#1" }],
    [`/agents/worker/${instance}`, { message: "#1" }],
    ["/workflows/steps", { number, steps: 1, ms: 200 }],
    [`/agents/worker/${instance}`, { message: "#1" }],
  ];
  const [path, body] = requests[number % requests.length] ?? ["", {}];
  const request = {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json" },
  };
  const url = `${cluster.kits[number % 3]?.process.url}${path}`;
  // A server closes idle connections, and a client can send over one at that moment.
  const reply = await fetch(url, request).catch(() => fetch(url, request));
  const { error } = (await reply.json()) as { readonly error?: { readonly message: string } };
  return {
    status: reply.status,
    retryAfter: Number(reply.headers.get("retry-after") ?? 0),
    message: error?.message ?? "",
  };
}

test("a refusal under load says what is true, and when to come back", async () => {
  const sending: Promise<Said>[] = [];
  for (let number = 0; number < 3_000; number += 1) {
    sending.push(send(number));
    if (number % 40 === 39) await delay(100);
  }
  const lastSentAt = performance.now();
  const said = await Promise.all(sending);
  const refused = said.filter(({ status }) => status >= 400);
  expect(refused.length).toBeGreaterThan(300);
  // No node stopped and no shard moved.
  expect(refused.filter(({ message }) => /another process|stopping/i.test(message))).toEqual([]);
  // A caller has used up its share, or the line is full: which one comes first depends on the speed of the machine.
  for (const { status, retryAfter } of refused) {
    expect([429, 503]).toContain(status);
    expect(retryAfter).toBeGreaterThan(0);
  }
  // Hints spread the refused, so the last ones are told a multiple of the time in which the queue is empty.
  await cluster.until(async () => {
    const { queued_dispatches, queued_runs } = await cluster.ask("/cluster");
    return queued_dispatches + queued_runs === 0;
  }, 120_000);
  const emptyS = (performance.now() - lastSentAt) / 1_000;
  const hints = refused.map(({ retryAfter }) => retryAfter).toSorted((one, other) => one - other);
  expect(hints[hints.length >> 1]).toBeLessThan(Math.max(120, 8 * emptyS));
}, 240_000);
