/**
 * The cost of dispatches for Postgres, in counts, which the load of the machine hardly changes: `bench/cluster/costs.json` has the
 * measured values and their limits.
 */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AgentCluster, type Costs } from "./harness/agent-cluster.ts";

const limits: Readonly<Record<string, Readonly<Record<string, { readonly limit: number }>>>> = JSON.parse(
  readFileSync(new URL("../../bench/cluster/costs.json", import.meta.url), "utf8"),
);
const counted = ["statements", "planned", "flushes"] as const;

let cluster: AgentCluster;
let rest: Costs;

beforeAll(async () => {
  cluster = await AgentCluster.start(1);
  // Each connection plans a statement a few times before it keeps a plan.
  await cluster.dispatch(400, 24);
  await delay(12_000);
  // A node removes old rows once a minute, and searches the work of nodes that are gone every five seconds: both may fall into it.
  rest = await cluster.costsOf(() => delay(30_000));
});

afterAll(() => cluster?.stop());

/** Costs of one of `count` pieces of work, without those of a node at rest. */
function each(costs: Costs, count: number): Partial<Costs> {
  const atRest = costs.seconds / rest.seconds;
  return Object.fromEntries(counted.map((name) => [name, (costs[name] - rest[name] * atRest) / count]));
}

function check(name: string, costs: Partial<Costs>): void {
  const exceeded = Object.entries(limits[name] ?? {}).filter(
    ([count, { limit }]) => !(Number(costs[count as keyof Costs]) <= limit),
  );
  expect(exceeded, `${name}: ${JSON.stringify(costs)}`).toEqual([]);
}

test("a node at rest asks Postgres a few things a second, and waits for no flush", () => {
  check(
    "a node at rest, per second",
    Object.fromEntries(counted.map((name) => [name, rest[name] / (name === "flushes" ? 1 : rest.seconds)])),
  );
});

test("a lone dispatch to a new instance waits for a flush only where something was promised", async () => {
  // The node's own work, at rest and once a minute, weighs little beside so many.
  const count = 30;
  const costs = await cluster.costsOf(async () => {
    for (let number = 0; number < count; number += 1) await cluster.dispatch(1, 1);
  });
  check("a lone dispatch", each(costs, count));
});

test("dispatches at once share their statements and flushes", async () => {
  const count = 300;
  const costs = await cluster.costsOf(() => cluster.dispatch(count, 24));
  check("one of 300 dispatches at once", each(costs, count));
});

test("three nodes share a little more work, and ask nothing for work that has ended", async () => {
  const count = 300;
  const three = await AgentCluster.start(3);
  try {
    await three.dispatch(400, 24);
    const costs = await three.costsOf(() => three.dispatch(count, 24));
    check("one of 300 dispatches at once, three nodes", {
      ...each({ ...costs, seconds: 3 * costs.seconds }, count),
    });
    const after = await three.costsOf(() => delay(10_000));
    const perSecond = after.statements / after.seconds / 3;
    check("a node at rest, per second", { statements: perSecond, flushes: after.flushes });
  } finally {
    await three.stop();
  }
});
