import { connect } from "node:net";
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
