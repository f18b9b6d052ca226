import { expect, test } from "vitest";
import { createEmbeddedEngine } from "./embedded/create-embedded-engine.ts";
import { createEngineOnDemand } from "./open-engine.ts";

const session = { agent: "echo", instance_id: "1", session: "default" };

function onDemand() {
  const calls = { created: 0 };
  const engine = createEngineOnDemand(async () => {
    calls.created += 1;
    return createEmbeddedEngine();
  });
  return { calls, engine };
}

const handlers = { dispatch: async () => "done", run: async () => "done" };

test("an engine without a call is never created", async () => {
  const { calls, engine } = onDemand();
  await engine.start(handlers);
  expect(engine.problem?.()).toBeUndefined();
  expect(await engine.events.last("agent/echo/1")).toBe(0);
  await engine.drain();
  expect(calls.created).toBe(0);
});

test("the first call creates and starts the engine, and concurrent calls share it", async () => {
  const { calls, engine } = onDemand();
  await engine.start(handlers);
  const [{ dispatch_id }, given] = await Promise.all([
    engine.admit({ ...session, input: "Hello" }),
    engine.inLine(session, async () => "inside"),
  ]);
  expect(given).toBe("inside");
  expect(await engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed", result: "done" });
  expect(calls.created).toBe(1);
  await engine.drain();
});

test("a drained engine accepts nothing, whether it was created before or not", async () => {
  for (const before of [true, false]) {
    const { engine } = onDemand();
    await engine.start(handlers);
    if (before) await engine.load();
    await engine.drain();
    await expect(engine.admit({ ...session, input: "Hello" })).rejects.toMatchObject({ code: "unavailable" });
  }
});

test("a run has its events", async () => {
  const { engine } = onDemand();
  await engine.start({ ...handlers, run: async (context) => await context.step("one", () => 1) });
  const { run_id } = await engine.startRun({ workflow: "count", payload: {} });
  expect(await engine.awaitRun(run_id)).toMatchObject({ status: "completed", result: 1 });
  await engine.drain();
});
