import { createHmac } from "node:crypto";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openEngineDatabase } from "../../engine/postgres/engine-database.ts";
import type { WebhookAccepted } from "../../protocol/dispatch.ts";
import { campaignTest } from "../../testing/campaign.suite.ts";
import { type PostgresServer, startPostgres } from "../../testing/postgres-server.ts";
import { collectEvents, readEventStream } from "../testing/read-event-stream.ts";
import { type ServedNode, serveCluster } from "../testing/serve-cluster.ts";
import { webhookSecrets } from "../testing/service-files.ts";
import { openSocket } from "../testing/socket-client.ts";

let database: PostgresServer;
let nodes: readonly ServedNode[];
let one: ServedNode;
let two: ServedNode;

beforeAll(async () => {
  database = await startPostgres();
  nodes = await serveCluster({ url: database.url, schema: "hop" });
  [one, two] = nodes as [ServedNode, ServedNode];
});

afterAll(async () => {
  await Promise.all(nodes?.map((node) => node.close()) ?? []);
  await database?.stop();
});

/** Parts of a reply that differ from one prompt to the next. */
function plain(text: string): string {
  return text
    .replace(/"(operation_id|turn_id|message_id|parent_operation_id)":"[^"]*"/g, '"$1":""')
    .replace(/"(timestamp|started_at)":"[^"]*"/g, '"$1":""')
    .replace(/"(\w+_ms)":[\d.]+/g, '"$1":0')
    .replace(/"instance_id":"[^"]*"/g, '"instance_id":""');
}

/** Headers that differ between two prompts of one node, too: a duration has a digit more, a reply ends before its head is sent. */
const varying = new Set(["date", "content-length", "transfer-encoding"]);

async function wholeReply(reply: Response) {
  const headers = Object.fromEntries([...reply.headers].filter(([name]) => !varying.has(name)));
  return { status: reply.status, headers, body: plain(await reply.text()) };
}

test("a node that does not own an instance answers a prompt as the owner does: JSON, events and errors", async () => {
  for (const [number, message] of ["Say this again.", "fail for good"].entries()) {
    for (const accept of ["application/json", "text/event-stream"]) {
      const id = await two.owned("echo", number * 2 + (accept === "application/json" ? 0 : 1));
      const ask = (node: ServedNode, session: string) =>
        node
          .stream(`/agents/echo/${id}`, { body: { message, session }, headers: { accept } })
          .then(wholeReply);
      const local = await ask(two, "s1");
      const remote = await ask(one, "s2");
      const withPlainNames = (text: string): string =>
        text.replaceAll(/"session":"s\d"/g, "").replaceAll(/"index":\d+|^id: \d+/gm, "");
      expect({ ...remote, body: withPlainNames(remote.body) }).toEqual({
        ...local,
        body: withPlainNames(local.body),
      });
    }
  }
});

campaignTest(
  "a prompt that has waited long in line joins it again when its owner loses its lease",
  async () => {
    const id = await two.owned("echo", 20);
    const path = `/agents/echo/${id}`;
    const held = two.send(path, { body: { message: "hold" }, headers: { "idempotency-key": "held" } });
    await two.echo.held(1);
    const waiting = one.send(path, { body: { message: "after it" } });
    await new Promise((resolve) => setTimeout(resolve, 6_000));
    const owned = { agent: "echo", instance_id: id };
    const fence = (): number => Math.max(...nodes.map(({ cluster }) => cluster.fence(owned)));
    const before = fence();
    const tables = await openEngineDatabase({ url: database.url, schema: "hop" });
    // As another node does that takes the shards and dies.
    await tables.run("UPDATE $s.shards SET fence = fence + 1, node = 'another'");
    await tables.run(
      "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid() GROUP BY pid",
    );
    await tables.close();
    await vi.waitUntil(() => fence() > before, { timeout: 10_000 });
    const lets = setInterval(() => {
      for (const node of nodes) node.echo.release();
    }, 100);
    expect(await waiting).toMatchObject({ status: 200, body: { result: { text: "after it" } } });
    expect((await held).status).toBe(200);
    clearInterval(lets);
  },
);

test("prompts on a WebSocket go to the owner, in their order, and stop when the client aborts them or leaves", async () => {
  const id = await two.owned("echo", 10);
  const client = await openSocket(`${one.url}/agents/echo/${id}`);
  await client.until("ready");
  for (let number = 0; number < 8; number += 1)
    client.send({ type: "prompt", request_id: `r${number}`, message: `number ${number}` });
  const done: string[] = [];
  while (done.length < 8) done.push((await client.until("result")).at(-1).request_id);
  expect(done).toEqual(Array.from({ length: 8 }, (_, number) => `r${number}`));
  const held = two.echo.held(1);
  client.send({ type: "prompt", request_id: "held", message: "hold" });
  await held;
  client.send({ type: "abort", request_id: "held" });
  expect((await client.until("error")).at(-1)).toMatchObject({
    request_id: "held",
    error: { type: "aborted" },
  });
  const again = two.echo.held(2);
  client.send({ type: "prompt", request_id: "left", message: "hold" });
  await again;
  client.socket.close();
  await expect
    .poll(async () => (await two.service.atWork()).map(({ instance_id }) => instance_id))
    .not.toContain(id);
});

test("the prompt of a client that disconnects is aborted on the node that owns the instance", async () => {
  const id = await two.owned("echo", 11);
  const leave = new AbortController();
  const reply = await one.stream(`/agents/echo/${id}`, { body: { message: "slow" }, signal: leave.signal });
  const events = readEventStream(reply);
  while ((await events.next()).value?.event !== "text_delta");
  expect((await two.send("/sessions")).body.sessions).toContainEqual(
    expect.objectContaining({ instance_id: id, status: "working" }),
  );
  expect((await one.send("/sessions")).body.sessions).toContainEqual(
    expect.objectContaining({ instance_id: id, status: "working" }),
  );
  leave.abort();
  await events.next().catch(() => undefined);
  await vi.waitFor(async () => {
    const { body } = await two.send(`/agents/echo/${id}/history`);
    expect(body.messages.at(-1)).toMatchObject({ finish_reason: "aborted" });
  }, 30_000);
});

test("any node aborts another node's work, reads its history and its page, and deletes the instance", async () => {
  const id = await two.owned("echo", 12);
  const path = `/agents/echo/${id}`;
  await one.send(path, { body: { message: "First." } });
  const held = two.echo.held(3);
  const prompt = two.send(path, { body: { message: "hold" } });
  await held;
  const page = (await one.send(`${path}/history?limit=10`)).body;
  expect(page).toEqual((await two.send(`${path}/history?limit=10`)).body);
  // The turn under way is told by the events behind the page, and only there.
  expect(page.messages.map(({ content }: { content: { text: string }[] }) => content[0]?.text)).toEqual([
    "First.",
    "First.",
  ]);
  const events = readEventStream(await one.stream(`${path}/events?after=${page.event_index}`));
  expect((await events.next()).value?.data).toMatchObject({ type: "operation_start" });
  expect((await one.send(`${path}/abort`, { body: {} })).body).toEqual({ aborted: true });
  expect((await prompt).body.error.type).toBe("aborted");
  const rest: string[] = [];
  for await (const { event } of events) {
    rest.push(event);
    if (event === "operation") break;
  }
  expect(rest.at(-1)).toBe("operation");
  expect((await one.send(`${path}/history`)).body).toEqual((await two.send(`${path}/history`)).body);
  const reader = collectEvents(await one.stream(`${path}/events`));
  expect((await one.send(path, { method: "DELETE" })).body).toEqual({ deleted: true });
  await reader;
  expect((await two.send(`${path}/history`)).status).toBe(404);
  expect((await one.send(`${path}/history`)).status).toBe(404);
});

test("calls that wait for approval are listed and decided on any node", async () => {
  const id = await two.owned("careful");
  const reply = one.send(`/agents/careful/${id}`, { body: { message: "pay 5" } });
  const path = `/agents/careful/${id}/approvals`;
  let waiting: { approval_id: string }[] = [];
  await vi.waitFor(async () => {
    waiting = (await one.send(path)).body.approvals;
    expect(waiting).toHaveLength(1);
  }, 30_000);
  expect((await one.send("/approvals")).body).toEqual((await two.send("/approvals")).body);
  expect((await one.send("/sessions")).body.sessions).toContainEqual(
    expect.objectContaining({ instance_id: id, status: "waiting" }),
  );
  const decided = await one.send(`${path}/${waiting[0]?.approval_id}`, { body: { approved: true } });
  expect(decided.body).toEqual({ approved: true });
  expect((await two.send(`${path}/${waiting[0]?.approval_id}`, { body: { approved: false } })).status).toBe(
    404,
  );
  expect((await reply).body.result.text).toBe("It is done.");
  expect((await two.send("/approvals")).body.approvals).toEqual([]);
});

test("live events of instances and runs come from the node that emits them, until it ends", async () => {
  const id = await two.owned("echo", 13);
  const live = readEventStream(await one.stream(`/agents/echo/${id}/events`));
  const result = await two.send(`/agents/echo/${id}`, { body: { message: "a b c" } });
  expect(result.status).toBe(200);
  const seen: string[] = [];
  for await (const { event } of live) {
    seen.push(event);
    if (event === "operation") break;
  }
  expect(seen.filter((event) => event === "text_delta")).toHaveLength(3);
  for (const node of nodes) {
    const { body } = await node.send("/workflows/talking", { body: { lines: 3 } });
    for (const reader of nodes) {
      const events = await collectEvents(await reader.stream(`/runs/${body.run_id}/stream`));
      expect(events.map(({ event }) => event)).toEqual([
        "run_start",
        "log",
        "log",
        "log",
        "run_end",
        "result",
      ]);
      expect((await reader.send(`/runs/${body.run_id}/events`)).body.events).toHaveLength(5);
    }
  }
});

test("a prompt with a key is answered with all its events by a node that does not work on it", async () => {
  const id = await two.owned("echo", 14);
  const headers = { "idempotency-key": "k1" };
  const events = await collectEvents(
    await one.stream(`/agents/echo/${id}`, { body: { message: "a b" }, headers }),
  );
  expect(events.map(({ event }) => event).filter((event) => event === "text_delta")).toHaveLength(2);
  expect(events.map(({ event }) => event).slice(-3)).toEqual(["operation", "idle", "result"]);
  expect(events.at(-1)).toMatchObject({ event: "result", data: { result: { text: "a b" } } });
});

test("lists and records are the same on every machine", async () => {
  const id = await two.owned("echo", 15);
  await one.send(`/agents/echo/${id}`, { body: { message: "Hello." } });
  const { dispatch_id } = (await one.send(`/agents/echo/${id}/dispatch`, { body: { input: "Later." } })).body;
  await one.service.engine.awaitDispatch(dispatch_id);
  const { run_id } = (await two.send("/workflows/talking", { body: { lines: 2 } })).body;
  await one.service.engine.awaitRun(run_id);
  const instance = `/agents/echo/${id}`;
  const { operations } = (await one.send(`${instance}/operations`)).body;
  const paths = [
    "/agents",
    "/approvals",
    "/sessions",
    "/dispatches",
    `/dispatches/${dispatch_id}`,
    "/workflows",
    "/schedules",
    "/runs",
    `/runs/${run_id}`,
    `/runs/${run_id}/events`,
    `/runs/${run_id}/journal`,
    `${instance}/history`,
    `${instance}/history?limit=2`,
    `${instance}/operations`,
    `${instance}/operations/${operations[0].operation_id}/events`,
    `${instance}/approvals`,
  ];
  for (const path of paths) {
    const [own, other] = await Promise.all(nodes.map((node) => node.send(path)));
    expect([path, other?.status, other?.body]).toEqual([path, 200, own?.body]);
  }
});

test("a delivery that reaches two nodes at once is handled once, and each node lists both requests with the node that got each", async () => {
  const body = '{"zen":"two nodes"}';
  const digest = createHmac("sha256", webhookSecrets.github).update(body).digest("hex");
  const headers = { "content-type": "application/json", "x-hub-signature-256": `sha256=${digest}` };
  const deliver = async (node: ServedNode): Promise<Response> => {
    for (;;) {
      const reply = await fetch(`${node.url}/webhooks/github`, { method: "POST", headers, body });
      // The other node is at it: the sender comes again.
      if (reply.status !== 503) return reply;
      await reply.body?.cancel();
    }
  };
  const replies = await Promise.all([one, two].map(deliver));
  const [first, second] = (await Promise.all(replies.map((reply) => reply.json()))) as WebhookAccepted[];
  expect(second).toEqual(first);
  const lists = await Promise.all(
    [one, two].map(async (node) => (await node.send("/deliveries?outcome=accepted")).body.deliveries),
  );
  expect(lists[1]).toEqual(lists[0]);
  const nodes = lists[0].map(({ node }: { readonly node: string }) => node);
  expect(nodes.toSorted()).toEqual([one, two].map(({ service }) => service.engine.cluster?.node).toSorted());
  for (const { dispatches } of lists[0]) expect(dispatches).toEqual([first?.dispatches[0]?.dispatch_id]);
});
