import { expect, test } from "vitest";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { FencedStore } from "./fenced-store.ts";

const key: SessionKey = { agent: "writer", instance_id: "pr-7", session: "default" };
const append = (expected: number) => ({ key, expected, entries: [] });

test("an agent's own store refuses a stale node, as the service's store does", async () => {
  const agentStore = new InMemorySessionStore();
  const [one, two] = [
    new FencedStore(new InMemorySessionStore()),
    new FencedStore(new InMemorySessionStore()),
  ];
  await one.takeOver(key, 1);
  const first = one.guard(agentStore);
  expect(one.guard(agentStore)).toBe(first);
  await first.append(append(0));
  await two.takeOver(key, 2);
  await two.guard(agentStore).read(key);
  await expect(first.append(append(0))).rejects.toMatchObject({ code: "lease_lost" });
  await two.guard(agentStore).append(append(0));
});

test("an agent's own store that checks no fences is refused, with a hint", () => {
  const { append: _, ...rest } = new InMemorySessionStore();
  const agentStore = {
    ...rest,
    append: () => undefined,
    read: () => [],
    info: () => undefined,
    list: () => [],
    delete: () => undefined,
    close: () => undefined,
  };
  expect(() => new FencedStore(new InMemorySessionStore()).guard(agentStore)).toThrow(
    expect.objectContaining({ code: "invalid_request", hint: expect.stringContaining("claim") }),
  );
});

test("after a session is deleted, the next input claims the instance again", async () => {
  let claims = 0;
  class Counting extends InMemorySessionStore {
    override claim(...args: Parameters<InMemorySessionStore["claim"]>): void {
      claims += 1;
      super.claim(...args);
    }
  }
  const fenced = new FencedStore(new Counting());
  await fenced.takeOver(key, 1);
  await fenced.takeOver(key, 1);
  expect(claims).toBe(1);
  await fenced.store.delete(key);
  await fenced.takeOver(key, 1);
  expect(claims).toBe(2);
});

test("a stale worker of a run cannot append for the run's agents once another node has the run, whoever owns the instance", async () => {
  const shared = new InMemorySessionStore();
  const [one, two] = [new FencedStore(shared), new FencedStore(shared)];
  const stale = one.forRun({ id: "run_1", fence: 3 })();
  expect(one.forRun({ id: "run_1", fence: 3 })()).toBe(stale);
  await stale.append(append(0));
  // The instance has an owner of its own, under fences that rise apart from the run's.
  await two.takeOver(key, 90);
  await stale.append(append(0));
  await two.forRun({ id: "run_1", fence: 4 })().read(key);
  await expect(stale.append(append(0))).rejects.toMatchObject({ code: "lease_lost" });
  await two.forRun({ id: "run_1", fence: 4 })().append(append(0));
  await two.store.append(append(0));
  await one.forRun({ id: "run_2", fence: 1 })().append(append(0));
});

test("an agent's own store refuses a stale worker of a run", async () => {
  const agentStore = new InMemorySessionStore();
  const nodes = [
    new FencedStore(new InMemorySessionStore()),
    new FencedStore(new InMemorySessionStore()),
  ] as const;
  const stale = nodes[0].forRun({ id: "run_1", fence: 3 })(agentStore);
  await stale.append(append(0));
  await nodes[1].forRun({ id: "run_1", fence: 4 })(agentStore).read(key);
  await expect(stale.append(append(0))).rejects.toMatchObject({ code: "lease_lost" });
});

test("a node remembers a limited number of idle instances, and every busy one", async () => {
  const fenced = new FencedStore(new InMemorySessionStore(), { maxIdle: 2 });
  const instances = Array.from({ length: 6 }, (_, number) => ({ ...key, instance_id: `i${number}` }));
  for (const instance of instances) await fenced.takeOver(instance, 1);
  await fenced.takeOver(key, 1);
  for (const instance of instances) fenced.endInput(instance);
  expect(instances.map((instance) => fenced.fenceOf(instance))).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
    1,
    1,
  ]);
  expect(fenced.fenceOf(key)).toBe(1);
});

test("an instance stays fenced until its last running input has ended", async () => {
  const shared = new InMemorySessionStore();
  const fenced = new FencedStore(shared, { maxIdle: 0 });
  await fenced.takeOver(key, 1);
  await fenced.takeOver(key, 1);
  fenced.endInput(key);
  await shared.claim(key, 2);
  await expect(async () => await fenced.store.append(append(0))).rejects.toMatchObject({
    code: "lease_lost",
  });
});
