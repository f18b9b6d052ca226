import { expect, test } from "vitest";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { gate, handlers } from "../cases/engine-check.ts";
import type { Engine } from "../contract.ts";
import type { Executor, Turn } from "./called-work.ts";
import { createCalledEngine } from "./create-postgres-engine.ts";

const server = postgresForTests();

/** An executor that calls the node for each `wake`. */
class OwnCalls implements Executor {
  readonly name = "test";
  #turn: Turn | undefined;

  wake(keys: Parameters<Executor["wake"]>[0]): void {
    const never = new AbortController().signal;
    for (const key of keys) this.#turn?.(key, never).catch(() => undefined);
  }

  async start(turn: Turn): Promise<void> {
    this.#turn = turn;
  }

  async stop(): Promise<void> {
    this.#turn = undefined;
  }

  problem(): undefined {}
}

async function startNode(): Promise<Engine> {
  const engine = await createCalledEngine({ url: server.url, schema: "called" }, new OwnCalls());
  await engine.start(handlers({}));
  return engine;
}

test("the node that gets a request owns an instance without an owner; otherwise its owner keeps it for as long as it lives", async () => {
  const [one, two] = [await startNode(), await startNode()];
  const owned = { agent: "a", instance_id: "one" };
  const ownerBy = async ({ cluster }: Engine) => (await cluster?.owner(owned))?.node;
  expect(await ownerBy(one)).toBe(one.cluster?.node);
  expect(await ownerBy(two)).toBe(two.cluster?.node);
  const [begun, end] = [gate(), gate()];
  const work = one.inLine({ ...owned, session: "default" }, async () => {
    begun.open();
    await end.opened;
  });
  await begun.opened;
  expect(await ownerBy(one)).toBe(one.cluster?.node);
  expect(await ownerBy(two)).toBe(one.cluster?.node);
  end.open();
  await work;
  await one.drain({ timeoutMs: 0 });
  await expect.poll(() => ownerBy(two)).toBe(two.cluster?.node);
  // The node takes the instance for work that a caller waits for.
  expect(await two.inLine({ ...owned, session: "default" }, async () => "done")).toBe("done");
  // A process that does no work reports no owner.
  const reader = await createCalledEngine({ url: server.url, schema: "called" }, new OwnCalls());
  expect(await reader.cluster?.owner({ agent: "a", instance_id: "other" })).toBeUndefined();
  await Promise.all([two, reader].map((engine) => engine.drain({ timeoutMs: 0 })));
});
