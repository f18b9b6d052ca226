import { HttpAgent, type RunAgentInput, verifyEvents } from "@ag-ui/client";
import { from, lastValueFrom, toArray } from "rxjs";
import { afterAll, expect, test } from "vitest";
import { AgUiFold } from "../../interfaces/ag-ui/fold.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { serveForTest, serveForTests } from "../testing/serve-for-tests.ts";

const served = serveForTests();
afterAll(() => expect(served.errors).toEqual([]));

let count = 0;
const agentOf = (name: string, threadId = `thread-${++count}`): HttpAgent =>
  new HttpAgent({ url: `${served.url}/agents/${name}/front/agui`, threadId });
const ask = (agent: HttpAgent, content: string): void =>
  agent.addMessage({ id: `said-${++count}`, role: "user", content });
const textsOf = (agent: HttpAgent): unknown[] => agent.messages.map(({ role, content }) => [role, content]);

interface Ended {
  readonly type: string;
  readonly outcome?: { readonly type: string; readonly interrupts?: readonly { readonly id: string }[] };
  readonly pendingToolCallIds?: unknown;
}

/** Runs an agent of AG-UI, whose client verifies each event, and returns the last event. */
async function run(agent: HttpAgent, options: object = {}): Promise<Ended> {
  let last: Ended | undefined;
  await agent.runAgent(options, {
    onEvent({ event }) {
      last = event as unknown as Ended;
    },
  });
  if (last === undefined) throw new Error("There is no event.");
  return last;
}

/** The events of `connect`, verified. */
async function connect(name: string, threadId: string) {
  const reply = await served.stream(`/agents/${name}/front/agui/connect`, {
    body: { threadId, runId: "again" },
  });
  const events = (await reply.text())
    .split("\n\n")
    .flatMap((frame) => (frame.startsWith("data: ") ? [JSON.parse(frame.slice(6))] : []));
  await lastValueFrom(from(events).pipe(verifyEvents(), toArray()));
  return events;
}

test("a front end runs an agent, message after message, and reads the thread again", async () => {
  const agent = agentOf("echo");
  ask(agent, "hello there you");
  expect(await run(agent)).toMatchObject({ type: "RUN_FINISHED", outcome: { type: "success" } });
  ask(agent, "and again");
  await run(agent);
  const said = [
    ["user", "hello there you"],
    ["assistant", "hello there you"],
    ["user", "and again"],
    ["assistant", "and again"],
  ];
  expect(textsOf(agent)).toEqual(said);
  const events = await connect("echo", agent.threadId);
  expect(events.map(({ type }) => type)).toEqual(["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]);
  expect(
    events[1].messages.map(({ role, content }: { role: string; content: string }) => [role, content]),
  ).toEqual(said);
});

test("an approval interrupts the run, and the next run decides it and goes on", async () => {
  for (const [status, text] of [
    ["resolved", "It is done."],
    ["cancelled", "It is done."],
  ] as const) {
    const agent = agentOf("careful");
    ask(agent, "pay 5");
    const { outcome } = await run(agent);
    expect(outcome?.type).toBe("interrupt");
    const again = await connect("careful", agent.threadId);
    expect(again.at(-1).outcome.interrupts).toEqual(outcome?.interrupts);
    const [{ id: interruptId } = { id: "" }] = outcome?.interrupts ?? [];
    const ended = await run(agent, { resume: [{ interruptId, status }] });
    expect(ended.outcome).toEqual({ type: "success" });
    const [result] = agent.messages.filter(({ role }) => role === "tool");
    expect(result?.content).toContain(status === "resolved" ? "Paid 5 cents." : "denied");
    expect(agent.messages.at(-1)).toMatchObject({ role: "assistant", content: text });
  }
});

test("a tool of the front end ends the run, and its result goes on in the next one", async () => {
  const agent = agentOf("echo");
  ask(agent, "weather");
  const parameters = { type: "object", properties: { place: { type: "string" } } };
  const tools = [{ name: "weather", description: "The weather.", parameters }];
  const { outcome } = await run(agent, { tools });
  const [call] = agent.messages.flatMap((message) =>
    message.role === "assistant" ? (message.toolCalls ?? []) : [],
  );
  expect([outcome, call?.function]).toEqual([
    { type: "success", pendingToolCallIds: [call?.id] },
    { name: "weather", arguments: '{"place":"Rome"}' },
  ]);
  agent.addMessage({ id: "result", role: "tool", toolCallId: call?.id ?? "", content: "64 degrees" });
  expect(await run(agent, { tools })).toMatchObject({ outcome: { type: "success" } });
  expect(agent.messages.at(-1)).toMatchObject({ content: "It said 64 degrees." });
  // The model uses the id of its call again.
  ask(agent, "weather");
  await run(agent, { tools });
  const calls = agent.messages.flatMap((message) =>
    message.role === "assistant" ? (message.toolCalls ?? []) : [],
  );
  expect(calls.map((each) => each.function.arguments)).toEqual(['{"place":"Rome"}', '{"place":"Rome"}']);
  expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
});

test("errors are the end of a run, refusals are sentences, and a run that is not awaited is refused", async () => {
  const agent = agentOf("echo");
  ask(agent, "fail for good");
  expect(await run(agent)).toMatchObject({ type: "RUN_ERROR", message: "It is too long." });
  const path = "/agents/echo/front/agui";
  const send = async (body: Partial<RunAgentInput>): Promise<unknown> => {
    const reply = await served.stream(path, { body: { threadId: "refused", runId: "r", ...body } });
    return [reply.status, await reply.text()];
  };
  expect(await send({ messages: [] })).toEqual([
    400,
    expect.stringContaining("must end with a message of the user"),
  ]);
  const odd = { toString: 1, valueOf: 1 };
  for (const source of [
    { type: "data", mimeType: odd, value: "AAAA" },
    { type: "data", mimeType: "image/png", value: odd },
  ]) {
    const content = [{ type: "image", source }] as never;
    expect(await send({ messages: [{ id: "odd", role: "user", content }] })).toEqual([
      400,
      expect.stringContaining("strings"),
    ]);
  }
  const resume = [{ interruptId: "x", status: "resolved" }] as const;
  expect(await send({ resume: [...resume] })).toEqual([409, "Nothing of this thread waits for this answer."]);
});

test("a result of a tool approves no call of the agent", async () => {
  const guarded = await serveForTest({ authorize: ({ action }) => action !== "agent.approve" });
  const path = "/agents/careful/front/agui";
  const send = (messages: readonly object[], more = {}) =>
    guarded.stream(path, { body: { threadId: "t", runId: `r${++count}`, messages, ...more } });
  await (await send([{ id: "m", role: "user", content: "pay 5" }])).text();
  const [call] = await guarded.service.approvals.list();
  const { approval_id = "", operation_id = "", tool_call_id = "" } = call ?? {};
  const call_id = `${operation_id}-${tool_call_id}`;
  for (const [toolCallId, content] of [[call_id], [call_id, "paid"], [approval_id], [approval_id, null]])
    expect((await send([{ id: "m2", role: "tool", toolCallId, content }])).status).toBe(409);
  const resume = [{ interruptId: approval_id, status: "resolved" }];
  expect((await send([], { resume })).status).toBe(403);
  expect(await guarded.service.approvals.list()).toEqual([call]);
});

test("AG-UI's verifier accepts the events of each operation, ended after any of them", async () => {
  const { service } = served;
  const target = { agent: "careful", instance_id: "front" };
  const { operations } = await service.operations(target);
  expect(operations.length).toBeGreaterThan(1);
  for (const operation of operations) {
    const { events: recorded } = await service.operationEvents({ ...target, ...operation }, { limit: 1_000 });
    // No log has the arguments as the model wrote them.
    const call = recorded.find((event) => event.type === "tool_start");
    const written = ['{"cents":', "5}"].flatMap((text): KitEvent[] =>
      call === undefined
        ? []
        : [{ ...call, type: "tool_args_delta", text, offset: text.startsWith("{") ? 0 : 9 }],
    );
    const turn = recorded.findIndex(({ type }) => type === "turn");
    const events = [...recorded.slice(0, turn), ...written, ...recorded.slice(turn)];
    for (let end = 1; end <= events.length; end += 1) {
      const fold = new AgUiFold({ operationId: operation.operation_id, threadId: "t", runId: "r" });
      const all = [...fold.start(), ...events.slice(0, end).flatMap((event) => fold.push(event))];
      const last = events[end - 1];
      if (!fold.isOver && last !== undefined) all.push(...fold.handOver(last));
      await lastValueFrom(from(all as never[]).pipe(verifyEvents(), toArray()));
    }
  }
});
