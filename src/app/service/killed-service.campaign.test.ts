import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import type { DispatchReceipt, DispatchRecord } from "../../protocol/dispatch.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { Message } from "../../protocol/message.ts";
import { textOf } from "../../protocol/read-records.ts";
import type { RunRecord } from "../../protocol/run.ts";
import { campaignTest } from "../../testing/campaign.suite.ts";
import { type ServiceProcess, startServiceProcess } from "../../testing/service-process/service-process.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import type { LogPage } from "./log-page.ts";

const files = {
  "src/agents/helper.ts": `import { appendFileSync } from "node:fs";
import { join } from "node:path";
export default {
  kind: "kit.agent",
  describe: async ({ env }) => ({
    tools: [{
      name: "note",
      description: "Notes something.",
      input: { type: "object", properties: {} },
      execute: async () => {
        appendFileSync(join(env.ROOT, "tool.log"), "noted\\n");
        return "Noted.";
      },
    }, {
      name: "pay",
      description: "Pays.",
      input: { type: "object", properties: {} },
      needsApproval: true,
      execute: async () => "Paid.",
    }, {
      name: "book",
      description: "Asks, then books.",
      input: { type: "object", properties: {} },
      execute: async (_, { ask }) => {
        appendFileSync(join(env.ROOT, "tool.log"), "asked\\n");
        const { value } = await ask({ message: "For how many?", schema: { type: "integer" } });
        appendFileSync(join(env.ROOT, "tool.log"), "booked\\n");
        return "For " + value + ".";
      },
    }, {
      name: "die",
      description: "Ends the process.",
      input: { type: "object", properties: {} },
      execute: async () => process.kill(process.pid, "SIGKILL"),
    }],
  }),
};
`,
  "src/workflows/order.ts": `import { appendFileSync } from "node:fs";
import { join } from "node:path";
import helper from "../agents/helper.ts";
export async function run(ctx) {
  const note = (text) => appendFileSync(join(ctx.env.ROOT, "steps.log"), text + "\\n");
  await ctx.step("first", async () => note("first"));
  const agent = await ctx.init(helper);
  const { text } = await agent.session().prompt("Think slow.");
  await ctx.step("second", async () => note("second"));
  const answer = await ctx.waitFor("approve");
  await ctx.sleep(5);
  await ctx.step("third", async () => note("third"));
  return { text, answer, roles: (await agent.session().history()).map(({ role }) => role) };
}
`,
};

async function project(): Promise<{
  readonly root: string;
  start(mood: "stuck" | "well", leaseMs?: number): Promise<ServiceProcess>;
  lines(file: string): Promise<readonly string[]>;
  /** Resolves once a line of a file holds a text. */
  untilIn(file: string, text: string): Promise<void>;
}> {
  const repository = await createTemporaryRepository(files);
  const { root } = repository;
  const started: ServiceProcess[] = [];
  onTestFinished(async () => {
    await Promise.all(started.map((child) => child.kill()));
    await repository[Symbol.asyncDispose]();
  });
  const lines = async (file: string): Promise<readonly string[]> => {
    const text = await readFile(join(root, file), "utf8").catch(() => "");
    return text.split("\n").filter((line) => line !== "");
  };
  return {
    root,
    lines,
    async start(mood, leaseMs) {
      const child = await startServiceProcess(root, mood, { leaseMs });
      started.push(child);
      return child;
    },
    async untilIn(file, text) {
      while (!(await lines(file)).some((line) => line.includes(text))) await delay(20);
    },
  };
}

const key = (id: string): { agent: string; instance_id: string; session: string } => ({
  agent: "helper",
  instance_id: id,
  session: "default",
});

/** Fails after a minute: work that no process takes over never ends. */
async function within(work: Promise<unknown>): Promise<unknown> {
  const late = delay(60_000, undefined, { ref: false }).then(() => {
    throw new Error("No process has taken the work over.");
  });
  return await Promise.race([work, late]);
}

async function textsOf(service: ServiceProcess, id: string): Promise<readonly string[]> {
  const history = (await service.ask("history", key(id))) as readonly Message[];
  return history.filter(({ role }) => role === "user").map(textOf);
}

test("the next process runs the inputs that a killed process had accepted, each once and in order", async () => {
  const { start, untilIn } = await project();
  const first = await start("stuck");
  const inputs = Array.from({ length: 40 }, (_, index) => ({
    id: `i${index % 4}`,
    text: index === 8 ? "slow 8" : `quick ${index}`,
  }));
  const receipts = (await Promise.all(
    inputs.map(({ id, text }) => first.ask("dispatch", key(id), text)),
  )) as readonly DispatchReceipt[];
  await untilIn("model.log", "slow 8");
  await first.kill();
  const second = await start("well");
  const records = (await Promise.all(
    receipts.map(({ dispatch_id }) => second.ask("awaitDispatch", dispatch_id)),
  )) as readonly DispatchRecord[];
  expect(records.map(({ status }) => status)).toEqual(inputs.map(() => "completed"));
  expect(records[8]?.attempts).toBe(2);
  for (const id of ["i0", "i1", "i2", "i3"]) {
    expect(await textsOf(second, id)).toEqual(
      inputs.filter((input) => input.id === id).map(({ text }) => text),
    );
  }
});

test("an input that waits for an approval is still there after six kills, and its call then runs", async () => {
  const { start, lines } = await project();
  let service = await start("well");
  const { dispatch_id } = (await service.ask("dispatch", key("1"), "pay")) as DispatchReceipt;
  const approval = async () => {
    for (;;) {
      const [call] = (await service.ask("approvals")) as readonly { readonly approval_id: string }[];
      if (call !== undefined) return call.approval_id;
      await delay(20);
    }
  };
  for (let life = 1; life <= 6; life += 1) {
    await approval();
    // The row of the call is written a moment after the call is listed, and the wait with it.
    while (((await service.ask("waitingCalls")) as readonly object[]).length === 0) await delay(20);
    await delay(100);
    await service.kill();
    service = await start("well");
  }
  await service.ask("approve", await approval());
  const record = (await service.ask("awaitDispatch", dispatch_id)) as DispatchRecord;
  expect(record).toMatchObject({ status: "completed", attempts: 7 });
  expect((await lines("model.log")).at(-1)).toContain("Paid.");
});

test("an input whose tool ends the process each time is a dead letter after five attempts, however often the model answered", async () => {
  const { start } = await project();
  let service = await start("well");
  const { dispatch_id } = (await service.ask("dispatch", key("1"), "die")) as DispatchReceipt;
  for (let life = 1; life <= 5; life += 1) {
    await service.ended();
    service = await start("well");
  }
  const record = (await within(service.ask("awaitDispatch", dispatch_id))) as DispatchRecord;
  expect(record).toMatchObject({ status: "failed", attempts: 5 });
  expect(await endsOf(service)).toMatchObject([
    { type: "operation", is_error: true },
    { status: "failed", attempts: 5, dispatch_id },
  ]);
});

test("an input that is cancelled after its process was killed ends once, in its stream and in its session", async () => {
  const { start, untilIn } = await project();
  const first = await start("stuck");
  const { dispatch_id } = (await first.ask("dispatch", key("1"), "slow")) as DispatchReceipt;
  await untilIn("model.log", "slow");
  // The process dies before it can end what it was told to cancel, or just after.
  await Promise.race([first.ask("cancelDispatch", dispatch_id), first.kill()]).catch(() => undefined);
  await first.kill();
  const second = await start("stuck");
  await second.ask("cancelDispatch", dispatch_id);
  const record = (await within(second.ask("awaitDispatch", dispatch_id))) as DispatchRecord;
  expect(record).toMatchObject({ status: "cancelled" });
  expect(await endsOf(second)).toMatchObject([
    { type: "operation", is_aborted: true },
    { status: "aborted", dispatch_id },
  ]);
});

/** The ends of the operations of the first instance: its events, then its history's. */
async function endsOf(service: ServiceProcess): Promise<readonly object[]> {
  const events = (await service.ask("events", "agent/helper/1")) as readonly KitEvent[];
  const { ends = [] } = (await service.ask("historyPage", key("1"))) as LogPage;
  return [...events.filter(({ type }) => type === "operation"), ...ends];
}

campaignTest.each(["hangs", "is killed"])(
  "what a process works on when it %s is done by the one that stands by, and written once",
  async (fate) => {
    const { start, untilIn } = await project();
    // One that is killed is replaced at once, however long its lease.
    const leaseMs = fate === "hangs" ? 1_000 : 3_600_000;
    const first = await start("stuck", leaseMs);
    const second = await start("well", leaseMs);
    const receipt = (await first.ask("dispatch", key("1"), "slow")) as DispatchReceipt;
    await untilIn("model.log", "slow");
    await (fate === "hangs" ? first.hang() : first.kill());
    const record = await within(second.ask("awaitDispatch", receipt.dispatch_id));
    expect(record).toMatchObject({ status: "completed", result: { text: "Done." }, attempts: 2 });
    if (fate === "hangs") first.wake();
    const next = (await second.ask("dispatch", key("1"), "quick")) as DispatchReceipt;
    expect(await within(second.ask("awaitDispatch", next.dispatch_id))).toMatchObject({
      status: "completed",
    });
    expect(await textsOf(second, "1")).toEqual(["slow", "quick"]);
  },
);

campaignTest(
  "an interrupted turn goes on after the tool call that had ended, which is not done again",
  async () => {
    const { start, untilIn, lines } = await project();
    const first = await start("stuck");
    const receipt = (await first.ask("dispatch", key("1"), "Be slow and use the tool")) as DispatchReceipt;
    await untilIn("model.log", "Noted.");
    await first.kill();
    const second = await start("well");
    expect(await second.ask("awaitDispatch", receipt.dispatch_id)).toMatchObject({
      status: "completed",
      result: { text: "Done." },
    });
    expect(await lines("tool.log")).toEqual(["noted"]);
    const history = (await second.ask("history", key("1"))) as readonly Message[];
    expect(history.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
  },
);

test("a run resumes after its last finished step, and accepts a signal after a restart", async () => {
  const { start, untilIn, lines } = await project();
  const first = await start("stuck");
  const { run_id } = (await first.ask("startRun", "order", {})) as { run_id: string };
  await untilIn("model.log", "Think slow.");
  await first.kill();
  const second = await start("well");
  await untilIn("steps.log", "second");
  await second.kill();
  const third = await start("well");
  await third.ask("signal", run_id, { name: "approve", payload: "yes" });
  expect((await third.ask("awaitRun", run_id)) as RunRecord).toMatchObject({
    status: "completed",
    result: { text: "Done.", answer: "yes", roles: ["user", "assistant"] },
  });
  expect(new Set(await lines("steps.log"))).toEqual(new Set(["first", "second", "third"]));
  expect((await lines("steps.log")).filter((line) => line === "first")).toHaveLength(1);
});

campaignTest(
  "a call of the caller's tool outlives the process: the next one takes its result, once",
  async () => {
    const { start } = await project();
    const first = await start("well");
    const tools = [{ name: "locate", description: "Where the person is." }];
    const { dispatch_id } = (await first.ask("dispatch", key("1"), "locate", { tools })) as DispatchReceipt;
    const waiting = async (service: ServiceProcess) =>
      (await service.ask("approvals")) as readonly { readonly approval_id: string; readonly kind?: string }[];
    await expect.poll(() => waiting(first), { timeout: 20_000 }).toMatchObject([{ kind: "caller" }]);
    const [asked] = await waiting(first);
    await first.kill();
    const second = await start("well");
    expect(await waiting(second)).toMatchObject([{ approval_id: asked?.approval_id, kind: "caller" }]);
    await second.ask("approve", asked?.approval_id, { city: "Oslo" });
    await within(second.ask("awaitDispatch", dispatch_id));
    const history = (await second.ask("history", key("1"))) as readonly Message[];
    expect(history.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
    expect(JSON.stringify(history[2])).toContain("Oslo");
  },
);

campaignTest(
  "a question outlives its process: the next one calls the tool again, which gets the answer",
  async () => {
    const { start, lines } = await project();
    const first = await start("well");
    const { dispatch_id } = (await first.ask("dispatch", key("1"), "book")) as DispatchReceipt;
    const waiting = async (service: ServiceProcess) =>
      (await service.ask("approvals")) as readonly { readonly approval_id: string; readonly kind?: string }[];
    await expect.poll(() => waiting(first), { timeout: 20_000 }).toMatchObject([{ kind: "question" }]);
    const [asked] = await waiting(first);
    await first.kill();
    const second = await start("well");
    expect(await waiting(second)).toMatchObject([
      { approval_id: asked?.approval_id, message: "For how many?" },
    ]);
    await second.ask("approve", asked?.approval_id, 4);
    await within(second.ask("awaitDispatch", dispatch_id));
    const history = (await second.ask("history", key("1"))) as readonly Message[];
    expect(JSON.stringify(history[2])).toContain("For 4.");
    expect(await lines("tool.log")).toEqual(["asked", "asked", "booked"]);
  },
);
