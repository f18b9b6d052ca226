import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect, test } from "vitest";
import { startPostgres } from "../../testing/postgres-server.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";

test("an input begins although the connection broke after its claim, before the answer, and its node stays the owner", async () => {
  const server = await startPostgres();
  const { port, username, password } = new URL(server.url);
  let cuts = 1;
  const proxy = createServer((near) => {
    const far = connect(Number(port), "127.0.0.1");
    let isClaim = false;
    near.on("data", (data: Buffer) => {
      isClaim ||=
        cuts > 0 && data.includes("SET status = CASE WHEN cancelling THEN status ELSE 'running' END");
      far.write(data);
    });
    far.on("data", (data: Buffer) => {
      // Postgres has committed when it answers.
      if (isClaim && cuts > 0 && data.includes("UPDATE 1")) {
        cuts -= 1;
        near.destroy();
        far.destroy();
      } else near.write(data);
    });
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.on("error", () => other.destroy());
      one.on("close", () => other.destroy());
    }
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const { port: own } = proxy.address() as AddressInfo;
  const url = `postgres://${username}:${password}@127.0.0.1:${own}/postgres`;
  const engine = await createPostgresEngine({ url, schema: "answers" });
  const attempts: number[] = [];
  await engine.start({
    run: async () => null,
    dispatch: async ({ attempt }) => {
      attempts.push(attempt);
      return null;
    },
  });
  const { dispatch_id } = await engine.admit({ agent: "a", instance_id: "i", session: "s", input: 1 });
  const ended = await engine.awaitDispatch(dispatch_id, { signal: AbortSignal.timeout(20_000) });
  expect(cuts).toBe(0);
  expect(ended).toMatchObject({ status: "completed", attempts: 1 });
  expect(attempts).toEqual([1]);
  await engine.drain({ timeoutMs: 0 });
  proxy.close();
  await server.stop();
}, 90_000);
