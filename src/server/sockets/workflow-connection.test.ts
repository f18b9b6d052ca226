import { describe, expect, test } from "vitest";
import { serveForTest, serveForTests } from "../testing/serve-for-tests.ts";
import { openSocket, type SocketClient, type SocketOptions } from "../testing/socket-client.ts";

const served = serveForTests();

const open = (path: string, options?: SocketOptions): Promise<SocketClient> =>
  openSocket(`${served.url}${path}`, options);

describe("a connection to a workflow", () => {
  test("accepts one run, sends its events and its result, and closes", async () => {
    const client = await open("/workflows/strict");
    expect(await client.next()).toEqual({ type: "ready", target: "workflow", name: "strict" });
    client.send({ type: "invoke", request_id: "1", payload: { n: 4 } });
    const frames = await client.until("result");
    expect(frames[0]).toEqual({ type: "started", request_id: "1", run_id: expect.stringMatching(/^run_/) });
    const events = frames.filter(({ type }) => type === "event");
    expect(events.map(({ event }) => event.type)).toEqual([
      "run_start",
      "log",
      "step_start",
      "step_end",
      "run_end",
    ]);
    expect(frames.at(-1)).toEqual({ type: "result", request_id: "1", result: { doubled: 8 } });
    expect(await client.closed).toBe(1000);
  });

  test("gets an error for an invalid frame, and can cancel its run", async () => {
    const wrong = await open("/workflows/strict");
    wrong.send({ type: "prompt", request_id: "0", message: "hi" });
    expect((await wrong.until("error")).at(-1)).toMatchObject({ request_id: "0" });
    wrong.send({ type: "invoke", request_id: "1", payload: { n: "x" } });
    expect((await wrong.until("error")).at(-1)).toMatchObject({
      request_id: "1",
      error: { type: "invalid_request" },
    });
    expect(await wrong.closed).toBe(1000);
    const client = await open("/workflows/waiting");
    client.send({ type: "invoke", request_id: "1" });
    await client.until("started");
    client.send({ type: "invoke", request_id: "2" });
    expect((await client.until("error")).at(-1)).toMatchObject({
      request_id: "2",
      error: { type: "conflict" },
    });
    client.send({ type: "abort", request_id: "1" });
    expect((await client.until("error")).at(-1)).toMatchObject({
      request_id: "1",
      error: { type: "aborted" },
    });
    expect(await client.closed).toBe(1000);
  });

  test("cancels its run only for whom `authorize` lets cancel it", async () => {
    const service = await serveForTest({ authorize: ({ action }) => action !== "run.cancel" });
    const client = await openSocket(`${service.url}/workflows/waiting`);
    client.send({ type: "invoke", request_id: "1" });
    const { run_id } = (await client.until("started")).at(-1);
    client.send({ type: "abort", request_id: "1" });
    const refused = (await client.until("error")).at(-1);
    expect([refused.request_id, refused.error.type]).toEqual([undefined, "forbidden"]);
    await service.service.engine.signal(run_id, { name: "word", payload: 1 });
    expect((await client.until("result")).at(-1)).toMatchObject({ request_id: "1", result: { said: 1 } });
  });

  test("begins its run only for whom `authorize` still lets run it", async () => {
    let permitted = true;
    const guarded = await serveForTest({ authorize: () => permitted });
    const client = await openSocket(`${guarded.url}/workflows/strict`);
    await client.until("ready");
    permitted = false;
    client.send({ type: "invoke", request_id: "1", payload: { n: 1 } });
    expect((await client.until("error")).at(-1)).toMatchObject({
      request_id: "1",
      error: { type: "forbidden" },
    });
    expect(await client.closed).toBe(1000);
    expect((await guarded.service.engine.listRuns()).items).toEqual([]);
  });

  test("does not end its run when it closes", async () => {
    const client = await open("/workflows/waiting");
    client.send({ type: "invoke", request_id: "1" });
    const { run_id } = (await client.until("started")).at(-1);
    client.socket.terminate();
    await client.closed;
    await served.send(`/runs/${run_id}/signal`, { body: { name: "word", payload: 1 } });
    expect(await served.service.engine.awaitRun(run_id)).toMatchObject({ status: "completed" });
  });
});
