import { afterEach, expect, test } from "vitest";
import { type ServedService, serveService } from "../testing/serve-service.ts";
import { openSocket } from "../testing/socket-client.ts";

let served: ServedService | undefined;
afterEach(async () => {
  served?.echo.release();
  await served?.close();
  served = undefined;
});

const keys = ["loud-key", "shy-key", "third-key"];
const as = (name: string) => ({ authorization: `Bearer ${name}-key` });

async function serve(engine: {
  readonly running: number;
  readonly waiting?: number;
}): Promise<ServedService> {
  const now = await serveService({ access: { apiKeys: keys }, engine });
  served = now;
  return now;
}

const dispatch = (to: ServedService, instance: string, sender: string) =>
  to.send(`/agents/echo/${instance}/dispatch`, { body: { input: "hold" }, headers: as(sender) });

/** Each way in, as another principal: resolves once its work is done. */
const entrances: Readonly<Record<string, (to: ServedService) => Promise<unknown>>> = {
  prompt: (to) => to.send("/agents/echo/shy", { body: { message: "hi" }, headers: as("shy") }),
  "prompt under a key": (to) =>
    to.send("/agents/echo/shy", {
      body: { message: "hi" },
      headers: { ...as("shy"), "idempotency-key": "k" },
    }),
  stream: async (to) =>
    (await to.stream("/agents/echo/shy", { body: { message: "hi" }, headers: as("shy") })).text(),
  dispatch: async (to) => {
    const path = "/agents/echo/shy/dispatch";
    const { body } = await to.send(path, { body: { input: "hi" }, headers: as("shy") });
    await to.service.engine.awaitDispatch(body.dispatch_id);
  },
  run: (to) => to.send("/workflows/strict?wait=result", { body: { n: 1 }, headers: as("shy") }),
  WebSocket: async (to) => {
    const client = await openSocket(`${to.url}/agents/echo/shy`, { headers: as("shy") });
    client.send({ type: "prompt", request_id: "1", message: "hi" });
    await client.until("result");
    client.socket.close();
  },
};

test.each(Object.entries(entrances))(
  "a %s does not wait for the many inputs of another principal",
  async (_, enter) => {
    const to = await serve({ running: 8 });
    await Promise.all(Array.from({ length: 60 }, (_, number) => dispatch(to, `i${number}`, "loud")));
    await to.echo.held(7);
    // None of the loud one's comes to its end meanwhile.
    await enter(to);
    const { items } = await to.service.engine.listDispatches({ status: "completed" });
    expect(items.filter(({ input }) => input === "hold")).toEqual([]);
  },
);

test("a principal with a full share of the queue gets an error with the time to retry after; others are accepted", async () => {
  const to = await serve({ running: 1, waiting: 9 });
  let refused = await dispatch(to, "i", "loud");
  for (let number = 0; refused.status === 202; number += 1)
    refused = await dispatch(to, `i${number}`, "loud");
  expect([refused.status, refused.body.error]).toMatchObject([
    429,
    { type: "too_many_requests", meta: { scope: "principal", waiting: 5 } },
  ]);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  for (const sender of ["shy", "third"])
    expect((await dispatch(to, `of-${sender}`, sender)).status).toBe(202);
  const prompt = to.send("/agents/echo/p", { body: { message: "hold" }, headers: as("loud") });
  expect((await prompt).body.error.meta.scope).toBe("principal");
});
