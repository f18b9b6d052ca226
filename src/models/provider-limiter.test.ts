import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { createManualClock } from "../testing/manual-clock.ts";
import { startProviderServer } from "../testing/provider-server/provider-server.ts";
import { createScriptedModel } from "../testing/scripted-model.ts";
import { createTestAgent } from "../testing/test-runtime.ts";
import { createModelResolver } from "./create-model-resolver.ts";
import { ProviderLimiter } from "./provider-limiter.ts";

const never = new AbortController().signal;

/** Notes when each call was let through. */
async function drive(
  limits: ConstructorParameters<typeof ProviderLimiter>[0],
  calls: readonly { readonly estimate: number }[],
  forMs: number,
): Promise<readonly number[]> {
  const clock = createManualClock(0);
  const limiter = new ProviderLimiter(limits, clock);
  const times: number[] = [];
  for (const { estimate } of calls) {
    void limiter.admit(estimate, never).then(() => times.push(clock.now()));
  }
  await clock.advance(forMs);
  return times;
}

test("requests over the limit wait until the oldest is a minute old, in the order in which they came", async () => {
  const calls = Array.from({ length: 5 }, () => ({ estimate: 1 }));
  expect(await drive({ requests_per_minute: 2 }, calls, 200_000)).toEqual([0, 0, 60_000, 60_000, 120_000]);
});

test("tokens are counted as the provider counted them once it has", async () => {
  const clock = createManualClock(0);
  const limiter = new ProviderLimiter({ tokens_per_minute: 100 }, clock);
  (await limiter.admit(10, never)).settle(95);
  const next = limiter.admit(10, never).then(() => clock.now());
  await clock.advance(60_000);
  expect(await next).toBe(60_000);
});

test("an estimate that was too high lets the next one go as soon as that is known", async () => {
  const clock = createManualClock(0);
  const limiter = new ProviderLimiter({ tokens_per_minute: 100 }, clock);
  const first = await limiter.admit(100, never);
  const second = limiter.admit(50, never);
  first.settle(20);
  await second;
  expect(clock.now()).toBe(0);
});

test("a call larger than the limit has a minute of its own", async () => {
  const calls = [{ estimate: 500 }, { estimate: 1 }];
  expect(await drive({ tokens_per_minute: 100 }, calls, 200_000)).toEqual([0, 60_000]);
});

test("a caller that gives up leaves the line, and those behind it move up", async () => {
  const clock = createManualClock(0);
  const limiter = new ProviderLimiter({ tokens_per_minute: 100 }, clock);
  await limiter.admit(60, never);
  const stop = new AbortController();
  const large = limiter.admit(90, stop.signal);
  const small = limiter.admit(40, never);
  stop.abort(new Error("given up"));
  await expect(large).rejects.toThrow("given up");
  await small;
  expect(clock.now()).toBe(0);
  await expect(limiter.admit(1, stop.signal)).rejects.toThrow("given up");
});

test("no minute ever has more than the limits allow, and every call gets its turn", async () => {
  const call = fc.record({
    estimate: fc.integer({ min: 0, max: 120 }),
    pause: fc.integer({ min: 0, max: 40_000 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(call, { maxLength: 12 }), async (calls) => {
      const clock = createManualClock(0);
      const limiter = new ProviderLimiter({ requests_per_minute: 3, tokens_per_minute: 100 }, clock);
      const passed: { at: number; tokens: number }[] = [];
      for (const { estimate, pause } of calls) {
        void limiter.admit(estimate, never).then(() => passed.push({ at: clock.now(), tokens: estimate }));
        await clock.advance(pause);
      }
      await clock.advance(60_000 * calls.length);
      expect(passed.map(({ tokens }) => tokens)).toEqual(calls.map(({ estimate }) => estimate));
      for (const { at } of passed) {
        const minute = passed.filter((other) => other.at > at - 60_000 && other.at <= at);
        expect(minute.length).toBeLessThanOrEqual(3);
        const tokens = minute.reduce((sum, one) => sum + one.tokens, 0);
        expect(tokens <= 100 || minute.length === 1).toBe(true);
      }
    }),
    { numRuns: 50 },
  );
});

test("sessions of all agents share the limit of a provider, and waiting is not a silence of the model", async () => {
  const server = await startProviderServer();
  onTestFinished(() => server.close());
  const clock = createManualClock();
  server.script(Array.from({ length: 3 }, () => ({ text: "ok" })));
  const { local = {} } = server.providers;
  const resolveModel = createModelResolver({
    env: {},
    clock,
    providers: { local: { ...local, limits: { requests_per_minute: 2 } } },
  });
  const agents = ["local/a", "local/b", "local/c"].map((model) =>
    createTestAgent(createScriptedModel([]), { model }, { resolveModel, modelIdleTimeoutMs: 300 }),
  );
  const done: string[] = [];
  const asking = agents.map(async (agent, at) => {
    await agent.session().prompt("x");
    done.push(`${at}`);
  });
  await Promise.all(asking.slice(0, 2));
  // Longer than a silent model is given.
  await new Promise((resolve) => setTimeout(resolve, 700));
  expect([done.toSorted(), server.requests.length]).toEqual([["0", "1"], 2]);
  await clock.advance(60_000);
  await Promise.all(asking);
  expect(server.requests).toHaveLength(3);
});
