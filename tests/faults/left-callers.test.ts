import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { createFaultProject } from "./service/fault-project.ts";
import { send } from "./service/requests.ts";

test("a server that was frozen begins no work for callers who have left meanwhile", async () => {
  const { kit } = await createFaultProject(() => 2);
  await kit.start();
  process.kill(kit.pid, "SIGSTOP");
  const body = JSON.stringify({ input: "#1" });
  const leaving = connect(Number(new URL(kit.url).port), "127.0.0.1");
  leaving.write(
    `POST /agents/worker/left/dispatch HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nidempotency-key: left\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await delay(300);
  leaving.end();
  leaving.destroy();
  const staying = send(`${kit.url}/agents/worker/stayed/dispatch`, { input: "#1" });
  await delay(2_000);
  process.kill(kit.pid, "SIGCONT");
  expect((await staying).status).toBe(202);
  await delay(500);
  const { body: list } = await send(`${kit.url}/dispatches?limit=10`);
  expect(list.dispatches.map(({ instance_id }: { readonly instance_id: string }) => instance_id)).toEqual([
    "stayed",
  ]);
});

test.each([
  { name: "an input", path: "/agents/worker/slow/dispatch", value: { input: "#1" }, list: "dispatches" },
  { name: "a prompt", path: "/agents/worker/slow", value: { message: "#1" }, list: "dispatches" },
  { name: "a run", path: "/workflows/sleeper", value: { ms: 600_000 }, list: "runs" },
])(
  "a request for $name that began before the cancellation of its work, and ended later, begins nothing",
  async ({ path, value, list }) => {
    const { kit } = await createFaultProject(() => 2, {
      files: {
        "src/workflows/sleeper.ts": "export async function run(ctx) { await ctx.sleep(ctx.payload.ms); }\n",
      },
      // The work goes on until it is cancelled.
      script: (prompt, results) => ({
        toolCall: { id: `${prompt}${results}`, name: "keep", args: JSON.stringify({ number: 6 }) },
      }),
    });
    await kit.start();
    const body = JSON.stringify(value);
    const slow = connect(Number(new URL(kit.url).port), "127.0.0.1");
    const head = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nidempotency-key: k`;
    slow.write(`${head}\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body.slice(0, 5)}`);
    await delay(300);
    const other = send(`${kit.url}${path}`, value, { "idempotency-key": "k" });
    const records = async () => (await send(`${kit.url}/${list}?limit=10`)).body[list];
    await expect.poll(async () => (await records())[0]?.status).toMatch(/running|waiting/);
    const [{ dispatch_id, run_id = dispatch_id }] = await records();
    await send(`${kit.url}/${list}/${run_id}/cancel`, {});
    await expect.poll(async () => (await records())[0].ended_at).toMatch(/T/);
    const ended = await records();
    expect(ended).toMatchObject([{ status: "cancelled" }]);
    await delay(50);
    slow.write(body.slice(5));
    expect(await text(slow)).toContain("aborted");
    expect(await records()).toEqual(ended);
    await other;
  },
);
