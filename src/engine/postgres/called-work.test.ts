import { afterAll, beforeAll, expect, test } from "vitest";
import { type PostgresServer, startPostgres } from "../../testing/postgres-server.ts";
import { gate, handlers } from "../cases/engine-check.ts";
import type { Engine } from "../contract.ts";
import type { Executor, Turn } from "./called-work.ts";
import { createCalledEngine } from "./create-postgres-engine.ts";

let server: PostgresServer;

beforeAll(async () => {
  server = await startPostgres();
});

afterAll(async () => {
  await server?.stop();
});

/** Calls the node for all that it says itself. */
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

test("the node that is asked owns an instance that no node works for, and the one that works for it otherwise, for as long as it lives", async () => {
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
  // It takes it to do what a caller waits for.
  expect(await two.inLine({ ...owned, session: "default" }, async () => "done")).toBe("done");
  // A process that does no work itself knows of no owner.
  const reader = await createCalledEngine({ url: server.url, schema: "called" }, new OwnCalls());
  expect(await reader.cluster?.owner({ agent: "a", instance_id: "other" })).toBeUndefined();
  await Promise.all([two, reader].map((engine) => engine.drain({ timeoutMs: 0 })));
});
