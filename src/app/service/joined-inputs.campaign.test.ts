import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import type { DispatchRecord } from "../../protocol/dispatch.ts";
import type { Message } from "../../protocol/message.ts";
import type { DispatchAccepted } from "../../protocol/prompt.ts";
import { textOf } from "../../protocol/read-records.ts";
import { type ServiceProcess, startServiceProcess } from "../../testing/service-process/service-process.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";

const files = {
  "src/agents/helper.ts": `export default {
  kind: "kit.agent",
  describe: async () => ({
    tools: [{ name: "note", description: "Notes.", input: { type: "object" }, execute: async () => "Noted." }],
  }),
};
`,
};

type Receipt = Pick<DispatchAccepted, "dispatch_id" | "operation_id">;

const key = { agent: "helper", instance_id: "1", session: "default" };

async function project(): Promise<(diesAt?: string) => Promise<ServiceProcess>> {
  const repository = await createTemporaryRepository(files);
  const started: ServiceProcess[] = [];
  onTestFinished(async () => {
    await Promise.all(started.map((child) => child.kill()));
    await repository[Symbol.asyncDispose]();
  });
  return async (diesAt = "") => {
    const child = await startServiceProcess(repository.root, "well", { diesAt });
    started.push(child);
    return child;
  };
}

const textsOf = async (service: ServiceProcess): Promise<readonly string[]> =>
  ((await service.ask("history", key)) as readonly Message[])
    .filter((message) => message.role === "user" && message.source === undefined)
    .map(textOf);

// The appends: the input, the call of the tool, its result, the message that joins, the answer.
const steps = [1, 2, 3, 4, 5].flatMap((append) => [`before ${append}`, `after ${append}`]);

test.each(steps)("a message joins once if the process dies %s", async (diesAt) => {
  const start = await project();
  const first = await start(diesAt);
  const dispatch = async (input: string, more: object): Promise<Receipt> =>
    (await first.ask("dispatch", key, input, more)) as Receipt;
  const begun = await dispatch("use the tool later", { idempotencyKey: "1" }).catch(() => undefined);
  const joined = await dispatch("steered", { join: "next_turn", idempotencyKey: "2" }).catch(() => undefined);
  await Promise.race([first.ended(), delay(2_500)]);
  await first.kill();
  const second = await start();
  const send = async (input: string, more: object): Promise<string> =>
    ((await second.ask("dispatch", key, input, more)) as Receipt).dispatch_id;
  // A sender that got no receipt sends its input again.
  const ids = [
    begun?.dispatch_id ?? (await send("use the tool later", { idempotencyKey: "1" })),
    joined?.dispatch_id ?? (await send("steered", { join: "next_turn", idempotencyKey: "2" })),
  ];
  const [ended, steered] = (await Promise.all(
    ids.map((id) => second.ask("awaitDispatch", id)),
  )) as DispatchRecord[];
  expect(ended).toMatchObject({ status: "completed", result: { text: expect.any(String) } });
  const operation_id = begun?.operation_id ?? expect.any(String);
  const { status, result } = steered ?? {};
  expect(status).toBe("completed");
  const { joined: into, text } = result as { joined?: string; text?: string };
  expect([into, text]).toEqual(into === undefined ? [undefined, "Steered."] : [operation_id, undefined]);
  expect(await textsOf(second)).toEqual(["use the tool later", "steered"]);
});

test("a message is answered whose operation was lost with its process", async () => {
  const start = await project();
  // The answer of the prompt that waits for its reply, after the message has joined.
  const first = await start("before 5");
  void first.ask("prompt", key, { message: "use the tool later" });
  await delay(100);
  const dispatched = first.ask("dispatch", key, "steered", { join: "next_turn" });
  const { dispatch_id } = (await dispatched) as Receipt;
  await first.ended();
  const second = await start();
  const record = (await second.ask("awaitDispatch", dispatch_id)) as DispatchRecord;
  expect(record).toMatchObject({ status: "completed", result: { text: "Steered." } });
  expect(await textsOf(second)).toEqual(["use the tool later", "steered"]);
});
