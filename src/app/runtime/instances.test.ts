import { expect, onTestFinished, test } from "vitest";
import type { Agent } from "../../agents/harness.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { type InstanceLimits, Instances } from "./instances.ts";

interface Opened {
  readonly instances: Instances;
  readonly created: readonly string[];
  /** Resolves once the instance of an id was closed. */
  closed(id: string): Promise<void>;
}

function open(limits: InstanceLimits = {}, fenceOf?: () => number | undefined): Opened {
  const created: string[] = [];
  const ends = new Map<string, PromiseWithResolvers<void>>();
  const endOf = (id: string): PromiseWithResolvers<void> => {
    const end = ends.get(id) ?? Promise.withResolvers<void>();
    ends.set(id, end);
    return end;
  };
  const instances = new Instances(
    async ({ agent: name, instance_id: id }): Promise<Agent> => {
      created.push(id);
      const agent = createTestAgent(
        createScriptedModel(() => ({ text: "ok" })),
        {},
        { name, id },
      );
      const close = agent.close.bind(agent);
      return Object.defineProperties(agent, {
        busy: { value: id === "busy" },
        close: {
          value: async (options: Parameters<Agent["close"]>[0]) => {
            await close(options);
            endOf(id).resolve();
          },
        },
      });
    },
    limits,
    fenceOf,
  );
  onTestFinished(() => instances.close());
  return { instances, created, closed: (id) => endOf(id).promise };
}

const of = (id: string) => ({ agent: "a", instance_id: id });

test("concurrent callers get the same live instance", async () => {
  const { instances, created } = open();
  const [first, second] = await Promise.all([instances.get(of("1")), instances.get(of("1"))]);
  expect(second).toBe(first);
  expect(created).toEqual(["1"]);
});

test("an instance that was opened under another fence is closed, and one that was opened under this fence stays", async () => {
  let fence: number | undefined;
  const { instances, created } = open({}, () => fence);
  await instances.get(of("1"));
  await instances.releaseUnless(of("1"), undefined);
  await instances.get(of("1"));
  fence = 7;
  await instances.releaseUnless(of("1"), fence);
  await instances.get(of("1"));
  await instances.releaseUnless(of("1"), fence);
  await instances.get(of("1"));
  expect(created).toEqual(["1", "1"]);
});

test("an idle instance is closed after a while, and created again for the next caller", async () => {
  const { instances, created, closed } = open({ idleMs: 10 });
  await instances.get(of("busy"));
  await instances.get(of("1"));
  await closed("1");
  await instances.get(of("1"));
  await instances.get(of("busy"));
  expect(created).toEqual(["busy", "1", "1"]);
});

test("the least recently used of too many instances are closed, unless they are busy", async () => {
  const { instances, created, closed } = open({ maxIdle: 2 });
  for (const id of ["busy", "1", "2"]) await instances.get(of(id));
  await closed("1");
  for (const id of ["busy", "2"]) await instances.get(of(id));
  expect(created).toEqual(["busy", "1", "2"]);
});

test("a released instance is closed before it is created again", async () => {
  const { instances, created, closed } = open();
  const before = await instances.get(of("1"));
  await instances.release(of("1"));
  await closed("1");
  expect(await instances.get(of("1"))).not.toBe(before);
  await instances.release(of("none"));
  instances.renew();
  await instances.get(of("1"));
  expect(created).toEqual(["1", "1", "1"]);
});
