import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { collectEvents } from "../testing/read-event-stream.ts";
import { serveForTests } from "../testing/serve-for-tests.ts";

let hasty: Server;
let statuses: number[] = [];

const served = serveForTests();
beforeAll(async () => {
  // An EventSource waits for seconds before it connects again, unless the stream says otherwise.
  hasty = createServer(async ({ url, headers }, response) => {
    const id = headers["last-event-id"];
    const reply = await fetch(`${served.url}${url}`, {
      headers: { accept: "text/event-stream", ...(id === undefined ? {} : { "last-event-id": String(id) }) },
    });
    statuses.push(reply.status);
    response.writeHead(reply.status, { "content-type": reply.headers.get("content-type") ?? "text/plain" });
    if (reply.status === 200) response.write("retry: 5\n\n");
    for await (const chunk of reply.body ?? []) response.write(chunk);
    response.end();
  });
  hasty.listen(0, "127.0.0.1");
  await once(hasty, "listening");
});
afterAll(() => {
  hasty.close();
});

/** The types of the events that a real EventSource receives until it gives up, in order. */
async function listen(path: string): Promise<readonly string[]> {
  statuses = [];
  const { port } = hasty.address() as AddressInfo;
  const types = ["run_start", "log", "run_end", "result", "error"];
  const script = `
    const heard = [];
    const source = new EventSource("http://127.0.0.1:${port}${path}");
    for (const type of ${JSON.stringify(types)}) source.addEventListener(type, ({ data }) => { if (data) heard.push(type); });
    const end = () => { console.log(JSON.stringify(heard)); process.exit(); };
    setInterval(() => { if (source.readyState === EventSource.CLOSED) end(); }, 5);
    setTimeout(end, 5_000);`;
  const { stdout } = await promisify(execFile)(process.execPath, [
    "--experimental-eventsource",
    "--no-warnings",
    "-e",
    script,
  ]);
  return JSON.parse(stdout) as readonly string[];
}

async function ended(workflow: string): Promise<string> {
  const { body } = await served.send(`/workflows/${workflow}`, { body: {} });
  await served.service.engine.awaitRun(body.run_id);
  return `/runs/${body.run_id}/stream`;
}

test.each([
  ["talking", "", ["run_start", "log", "run_end", "result"]],
  ["failing", "", ["run_start", "run_end", "error"]],
  ["talking", "?after=2", ["run_end", "result"]],
  ["talking", "?after=999", ["result"]],
])("an EventSource on an ended run ends: %s%s", async (workflow, query, expected) => {
  expect(await listen(`${await ended(workflow)}${query}`)).toEqual(expected);
  expect(statuses).toEqual([200, 204]);
});

test("a reader that reconnects after the last event gets 204, and one that missed events gets those", async () => {
  const path = await ended("talking");
  const again = async (id: string): Promise<Response> =>
    await served.stream(path, { headers: { "last-event-id": id } });
  for (const id of ["3", "4", "999999"]) {
    const reply = await again(id);
    expect([id, reply.status, await reply.text()]).toEqual([id, 204, ""]);
  }
  expect((await collectEvents(await again("2"))).map(({ event }) => event)).toEqual(["run_end", "result"]);
  expect((await again("none")).status).toBe(400);
});

test("a reader that reconnects to an instance that was deleted since then reads the new one from its beginning", async () => {
  const path = "/agents/echo/again";
  await served.send(path, { body: { message: "one" } });
  await served.send(path, { method: "DELETE" });
  await served.send(path, { body: { message: "two" } });
  const reply = await served.stream(`${path}/events`, { headers: { "last-event-id": "900" } });
  const reader = reply.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("operation_start")) text += (await reader?.read())?.value ?? "";
  await reader?.cancel();
  expect(text).toMatch(/^id:\n\nid: 1\nevent: /);
});
