import { afterAll, beforeAll, expect, test } from "vitest";
import { KitClient } from "../../client/kit-client.ts";
import { openEngineDatabase } from "../../engine/postgres/engine-database.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { type PostgresServer, startPostgres } from "../../testing/postgres-server.ts";
import { type ServedNode, serveCluster } from "../testing/serve-cluster.ts";

let postgres: PostgresServer;
let nodes: readonly ServedNode[];
let database: Awaited<ReturnType<typeof openEngineDatabase>>;

beforeAll(async () => {
  postgres = await startPostgres();
  const target = { url: postgres.url, schema: "lost" };
  nodes = await serveCluster(target, 2);
  database = await openEngineDatabase(target);
}, 60_000);
afterAll(async () => {
  await database?.close();
  await Promise.all((nodes ?? []).map((node) => node.close()));
  await postgres?.stop();
});

/** The start of a stream's text, up to its first event. */
async function startOf(reply: Response): Promise<string> {
  const reader = reply.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("data: ")) text += (await reader?.read())?.value ?? "";
  await reader?.cancel();
  return text;
}

test("a reader that has seen events that were lost with their node goes on after them, at any node", async () => {
  for (const [number, node] of nodes.entries()) {
    const id = `gone-${number}`;
    // A killed node has left the stream in its name. Its last events, 41 to 48, were not written.
    await database.run(
      `WITH killed AS (INSERT INTO $s.streams (name, writer, last) VALUES ($1, 'killed/7', 40) RETURNING id)
       INSERT INTO $s.batches (stream_id, first, last, events, written_ms, data)
       SELECT id, 1, 40, 40, $2, '{"events":[]}' FROM killed`,
      [`agent/echo/${id}`, Date.now()],
    );
    const plain = await node.stream(`/agents/echo/${id}/events`, { headers: { "last-event-id": "48" } });
    const events = new KitClient({ baseUrl: node.url }).agents.events("echo", { id, after: 48 });
    const next = events[Symbol.asyncIterator]().next();
    await nodes[0]?.send(`/agents/echo/${id}`, { body: { message: "again" } });
    const first = (await next).value as KitEvent;
    expect([first.type, first.index > 48]).toEqual(["operation_start", true]);
    expect(await startOf(plain)).toMatch(new RegExp(`^id: ${first.index}\nevent: operation_start\n`));
  }
});

test("a reader of a deleted instance reads the new one from its first event, at any node, however far that is", async () => {
  const path = "/agents/echo/anew/events";
  const prompt = async (message: string): Promise<unknown> =>
    await nodes[0]?.send("/agents/echo/anew", { body: { message } });
  for (const node of nodes) {
    await prompt("one");
    const before = await node.stream(path);
    const stream = before.headers.get("kit-stream") ?? "";
    await before.body?.cancel();
    const again = async (id: string, headers = {}): Promise<string> =>
      await startOf(await node.stream(path, { headers: { "last-event-id": id, ...headers } }));
    expect(await again("3", { "kit-stream": stream })).toMatch(/^id: [1-9]/);
    await node.send("/agents/echo/anew", { method: "DELETE" });
    await prompt("many more words than before, ".repeat(5));
    expect(await again("3", { "kit-stream": stream })).toMatch(/^id:\n\nid: 1\n/);
    // Without the id of its stream, a position counts as one of this stream if it can be.
    expect(await again("900")).toMatch(/^id:\n\nid: 1\n/);
    expect(await again("3")).toMatch(/^id: [1-9]/);
    await node.send("/agents/echo/anew", { method: "DELETE" });
  }
});

test("a reader of a run gets its end, whichever node cancels it", async () => {
  for (const node of nodes) {
    const { run_id } = await node.service.engine.startRun({ workflow: "waiting", payload: {} });
    const other = nodes.find(({ cluster }) => !cluster.owns({ run_id }));
    await expect
      .poll(
        async () =>
          (await database.row<{ status: string }>("SELECT status FROM $s.runs WHERE run_id = $1", [run_id]))
            ?.status,
      )
      .toBe("waiting");
    const events = new KitClient({ baseUrl: node.url }).runs.stream(run_id)[Symbol.asyncIterator]();
    expect((await events.next()).value).toMatchObject({ type: "run_start" });
    const end = events.next();
    expect(await other?.service.engine.cancelRun(run_id)).toBe(true);
    expect((await end).value).toMatchObject({ type: "run_end", reason: "cancelled" });
    await expect(events.next()).rejects.toThrow("The run was cancelled.");
  }
}, 60_000);
