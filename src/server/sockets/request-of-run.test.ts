import { expect, onTestFinished, test } from "vitest";
import { readEventStream } from "../testing/read-event-stream.ts";
import { serveForTest } from "../testing/serve-for-tests.ts";
import { serveService } from "../testing/serve-service.ts";
import { openSocket } from "../testing/socket-client.ts";

test("a workflow gets the request that started it: with a body, of a WebSocket's handshake, and none after a restart", async () => {
  const served = await serveService({
    files: {
      "src/workflows/asked.ts":
        'export const run = ({ req }) => ({ url: req.url, method: req.method, tenant: req.headers.get("x-tenant") });\n',
    },
  });
  onTestFinished(() => served.close());
  const headers = { "x-tenant": "b" };
  const path = "/workflows/asked?wait=result&x=%20";
  const { body } = await served.send("/workflows/asked?wait=result", { body: {}, headers });
  expect(body.result).toEqual({
    url: expect.stringContaining("/workflows/asked"),
    method: "POST",
    tenant: "b",
  });
  const socket = await openSocket(`${served.url}${path}`, { headers });
  socket.send({ type: "invoke", request_id: "1" });
  const [{ result }] = (await socket.until("result")).slice(-1);
  expect(result).toEqual({ url: `${served.url}${path}`, method: "GET", tenant: "b" });
});

test("an event has only the fields that apply: a run's own have no agent and no session", async () => {
  const served = await serveForTest();
  const ids: string[] = [];
  for (const name of ["talking", "waiting"]) {
    const { body } = await served.send(`/workflows/${name}`, { body: {} });
    ids.push(body.run_id);
  }
  await expect.poll(async () => (await served.send(`/runs/${ids[1]}`)).body.status).toBe("waiting");
  await served.send(`/runs/${ids[1]}/cancel`, { body: {} });
  for (const id of ids) {
    const types: string[] = [];
    for await (const { event, data } of readEventStream(await served.stream(`/runs/${id}/stream`))) {
      types.push(event);
      for (const [name, value] of Object.entries(data)) expect([name, value]).not.toEqual([name, ""]);
      if (event !== "result" && event !== "error") expect(Object.keys(data)).not.toContain("agent");
    }
    expect(types).toContain("run_end");
  }
});
