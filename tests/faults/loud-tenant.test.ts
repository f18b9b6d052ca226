import { expect, test } from "vitest";
import { createRandom } from "./seeded-random.ts";
import { createFaultProject } from "./service/fault-project.ts";

const agent = `import { setTimeout as delay } from "node:timers/promises";
import { createAgent, defineTool } from "kit";

const slow = defineTool({
  name: "keep",
  description: "Takes a moment.",
  input: { type: "object", properties: { number: { type: "integer" } }, required: ["number"] },
  execute: () => delay(300),
});

export const triggers = { webhook: true };
export default createAgent({ model: "local/any", instructions: "You wait.", tools: [slow], specs: false, guidelines: false });
`;

const waiting = 400;

test("400 inputs of one principal do not delay another principal, and leave room in the queue, also after a kill", async () => {
  const { kit } = await createFaultProject(createRandom(1), {
    engine: `concurrency = 8\nmax_waiting = ${2 * waiting}\n\n[server]\napi_keys = ["loud-key", "shy-key"]`,
    files: { "src/agents/slow.ts": agent },
  });
  await kit.start();
  const send = (path: string, client: string, body: unknown): Promise<Response> =>
    fetch(`${kit.url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${client}-key` },
      body: JSON.stringify(body),
    });
  const statuses = new Set<string>();
  const dispatch = async (number: number): Promise<void> => {
    const reply = await send(`/agents/slow/i${number}/dispatch`, "loud", { input: "#1" });
    await reply.body?.cancel();
    statuses.add(`${reply.status} ${Number(reply.headers.get("retry-after")) > 0}`);
  };
  let sent = 0;
  // A slow machine does some inputs while it accepts the others: the line is full once an input is refused.
  do {
    await Promise.all(Array.from({ length: sent === 0 ? waiting : 40 }, () => dispatch(sent++)));
  } while (statuses.size === 1 && sent < 10 * waiting);
  expect([...statuses].toSorted()).toEqual(["202 false", "429 true"]);
  /** Waits for an answer, and then counts the waiting inputs of the other principal, up to twenty. */
  const passed = async (): Promise<number> => {
    const reply = await send("/agents/slow/shy", "shy", { message: "hello" });
    expect(reply.status).toBe(200);
    await reply.text();
    const headers = { authorization: "Bearer loud-key" };
    const queued = await fetch(`${kit.url}/dispatches?status=queued&limit=20`, { headers });
    const { dispatches } = (await queued.json()) as { readonly dispatches: readonly unknown[] };
    return dispatches.length;
  };
  expect(await passed()).toBe(20);
  await kit.end("SIGKILL");
  await kit.start();
  expect(await passed()).toBe(20);
});
