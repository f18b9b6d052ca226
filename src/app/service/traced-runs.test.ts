import { expect, test } from "vitest";
import { createOpenTelemetryObserver, replayEvents } from "../../otel/create-observer.ts";
import { recordSpans, shapeOf } from "../../otel/testing/recorded-spans.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { Script } from "../../testing/scripted-model.ts";
import { eventsOf, openWorkflows, waiting } from "./testing/open-workflows.ts";

/** A workflow of which a model, or a call of its own, decides how it ends; traced with content. */
async function trace(
  body: string,
  script: Script,
  /** Whether the run is cancelled once it waits, and whether to read its log once neighbouring deltas are joined. */
  { cancel = false, joins = false }: { readonly cancel?: boolean; readonly joins?: boolean } = {},
) {
  const { service } = await openWorkflows(
    {
      "src/workflows/order.ts": `import writer from "../agents/writer.ts";
export async function run(ctx) {
  const agent = await ctx.init(writer);
  const session = agent.session();
  ${body}
}`,
    },
    script,
  );
  const options = { captureContent: true };
  const live = recordSpans({ sameIds: true });
  const observer = createOpenTelemetryObserver({ tracer: live.tracer, meter: false, ...options });
  const received: KitEvent[] = [];
  service.app.onEvent(observer);
  service.app.onEvent((event) => received.push(event));
  const { run_id } = await service.startRun("order", {});
  if (cancel) {
    await waiting(service, run_id);
    await service.engine.cancelRun(run_id);
  }
  const record = await service.engine.awaitRun(run_id);
  await service.engine.events.flush();
  const stored = joins ? await joinedEvents(service, run_id, deltasOf(received)) : [];
  // The observer receives the last events of a cancelled agent when the application closes.
  await service.close({ timeoutMs: 1_000 });
  const replay = (events: readonly KitEvent[]) => {
    const again = recordSpans({ sameIds: true });
    replayEvents(events, { tracer: again.tracer, ...options });
    return again.spans();
  };
  return { live, observer, received, stored, record, replay };
}

const deltasOf = (events: readonly KitEvent[]): number =>
  events.filter(({ type }) => type === "text_delta").length;

/** The stored events; the log joins neighbouring deltas a while after it has written them. */
async function joinedEvents(
  service: Parameters<typeof eventsOf>[0],
  run_id: string,
  received: number,
): Promise<readonly KitEvent[]> {
  for (let attempt = 0; ; attempt += 1) {
    const stored = await eventsOf(service, run_id);
    if (deltasOf(stored) < received || attempt === 200) return stored;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const failures: readonly (readonly [
  how: string,
  body: string,
  script: Script,
  end: "failed" | "cancelled",
])[] = [
  ["throws", `throw new Error("broken");`, [], "failed"],
  ["fails in a step", `await ctx.step("pay", () => { throw new Error("broken"); });`, [], "failed"],
  [
    "fails in a step's second attempt",
    `await ctx.step("pay", () => { throw new Error("broken"); }, { attempts: 2, backoffMs: 1 });`,
    [],
    "failed",
  ],
  ["asks a model that is broken", `await session.prompt("x");`, () => ({ error: new Error("no") }), "failed"],
  [
    "asks a broken model in a step",
    `await ctx.step("ask", () => session.prompt("x"));`,
    () => ({ error: new Error("no") }),
    "failed",
  ],
  [
    "has no summary of its history",
    `await session.prompt("x ".repeat(50_000)); await session.prompt("y"); await session.compact();`,
    [{ text: "one" }, { text: "two" }, { error: new Error("no") }, { error: new Error("no") }],
    "failed",
  ],
  [
    "is out of its time in a step",
    `await ctx.step("wait", () => new Promise(() => undefined), { timeoutMs: 20 });`,
    [],
    "failed",
  ],
  ["is cancelled while it waits", `ctx.log.info("waiting"); await ctx.waitFor("never");`, [], "cancelled"],
  [
    "is cancelled in a step",
    `await ctx.step("wait", async () => { ctx.log.info("waiting"); await new Promise(() => undefined); });`,
    [],
    "cancelled",
  ],
  [
    "is cancelled while a model answers",
    `ctx.log.info("waiting"); await session.prompt("x");`,
    () => ({ text: "late", delayMs: 2_000 }),
    "cancelled",
  ],
];

test.each(failures)("nothing is left open of a run that %s", async (...[, body, script, end]) => {
  const cancel = end === "cancelled";
  const { observer, live, received, record, replay } = await trace(body, script, { cancel });
  expect(record?.status).toBe(end);
  expect(observer.open).toBe(0);
  const run = live.withName("invoke_workflow order");
  expect(run.attributes).toMatchObject({
    "error.type": cancel ? "aborted" : expect.stringMatching(/^[a-z_]+$/),
    "kit.run.reason": end,
  });
  for (const span of live.spans()) expect(span.spanContext().traceId).toBe(run.spanContext().traceId);
  expect(withoutQuestions(replay(received))).toEqual(withoutQuestions(live.spans()));
});

test("a stored log, whose deltas are joined, replays to the spans that were live, but for what models were asked", async () => {
  const pieces = Array.from({ length: 60 }, (_, piece) => `piece ${piece} `);
  const body = `await ctx.step("ask", () => session.prompt("canary-question"));`;
  const { live, received, stored, replay } = await trace(body, [{ deltas: pieces, delayMs: 5 }], {
    joins: true,
  });
  expect(deltasOf(stored)).toBeLessThan(deltasOf(received));
  const again = replay(stored);
  expect(withoutQuestions(again)).toEqual(withoutQuestions(live.spans()));
  expect(JSON.stringify(shapeOf(live.spans()))).toContain("canary-question");
  expect(JSON.stringify(shapeOf(again))).not.toContain("canary-question");
  expect(JSON.stringify(shapeOf(again))).toContain(pieces.join(""));
});

/** Removes the prompts of models, which no event holds. */
function withoutQuestions(spans: Parameters<typeof shapeOf>[0]): readonly unknown[] {
  return (shapeOf(spans, true) as readonly { readonly attributes: object }[]).map(
    ({ attributes, ...span }) => ({
      ...span,
      attributes: Object.fromEntries(
        Object.entries(attributes).filter(
          ([name]) => name !== "gen_ai.input.messages" && name !== "gen_ai.system_instructions",
        ),
      ),
    }),
  );
}
