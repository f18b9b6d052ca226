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

test("400 inputs of one principal keep no other principal waiting, and leave room in the line, after a kill as well", async () => {
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
  const statuses = await Promise.all(
    Array.from({ length: waiting + 40 }, async (_, number) => {
      const reply = await send(`/agents/slow/i${number}/dispatch`, "loud", { input: "#1" });
      await reply.body?.cancel();
      return `${reply.status} ${Number(reply.headers.get("retry-after")) > 0}`;
    }),
  );
  expect([...new Set(statuses)].toSorted()).toEqual(["202 false", "429 true"]);
  const shy = async (): Promise<number> => {
    const started = performance.now();
    const reply = await send("/agents/slow/shy", "shy", { message: "hello" });
    expect(reply.status).toBe(200);
    await reply.text();
    return performance.now() - started;
  };
  // Behind all of them it would be some 15 s.
  expect(await shy()).toBeLessThan(5_000);
  await kit.end("SIGKILL");
  await kit.start();
  expect(await shy()).toBeLessThan(5_000);
});
