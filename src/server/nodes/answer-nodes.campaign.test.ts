import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { NodeClient, NodeLost } from "../../app/cluster/node-client.ts";
import { digestOf, isSigned, signCall, UsedSignatures } from "../../app/cluster/signature.ts";
import type { ClusterNode } from "../../engine/cluster.ts";
import { type PostgresServer, startPostgres } from "../../testing/postgres-server.ts";
import { standStill } from "../../testing/stand-still.ts";
import { reachableAt } from "../listen.ts";
import { type ServedNode, serveCluster } from "../testing/serve-cluster.ts";

let database: PostgresServer;
let nodes: readonly ServedNode[];
let one: ServedNode;
let two: ServedNode;
const keys = ["key-of-a-user-0123456789"];
const authorized = { authorization: `Bearer ${keys[0]}` };

beforeAll(async () => {
  database = await startPostgres();
  nodes = await serveCluster({ url: database.url, schema: "nodes" }, 2, {
    access: { apiKeys: keys },
    authorize: ({ principal, instance }) =>
      principal?.id.startsWith("key_") === true && instance !== "private",
    limits: { bodyBytes: 12 * 1024 * 1024, unreadBytes: 1_000_000 },
  });
  [one, two] = nodes as [ServedNode, ServedNode];
});

afterAll(async () => {
  await Promise.all(nodes?.map((node) => node.close()) ?? []);
  await database?.stop();
});

interface Forgery {
  readonly name?: string;
  readonly node?: string;
  readonly at?: number;
  readonly body?: string;
  readonly secret?: string;
  /** The signed text, where it is not the body. */
  readonly signed?: string;
  readonly nonce?: string;
}

async function call(
  to: ServedNode,
  { name = "abort", body = "{}", ...headers }: Forgery = {},
): Promise<Response> {
  const { node = to.cluster.node, at = to.cluster.now(), signed = body, nonce = randomUUID() } = headers;
  const secret = headers.secret ?? (await to.cluster.secret());
  const digest = digestOf(signed);
  return await fetch(`${to.url}/_kit/nodes/${name}`, {
    method: "POST",
    body,
    headers: {
      "kit-node": node,
      "kit-node-time": `${at}`,
      "kit-node-digest": digest,
      "kit-node-nonce": nonce,
      "kit-node-signature": signCall(secret, { name: "abort", node, at, digest, nonce }),
    },
  });
}

test("a call without the signature of a node of the cluster is refused, whatever it contains", async () => {
  const target = JSON.stringify({ agent: "echo", instance_id: await two.owned("echo") });
  expect(await (await call(two, { body: target })).text()).toContain('{"is":"result","value":false}');
  const forged: readonly Forgery[] = [
    { secret: "another" },
    { name: "remove" },
    { at: two.cluster.now() - 60_000 },
    { at: two.cluster.now() + 60_000 },
    { at: Number.NaN },
    { signed: "{}" },
    { body: `${target} `, signed: target },
  ];
  for (const each of forged)
    expect([each, (await call(two, { body: target, ...each })).status]).toEqual([each, 403]);
  for (const method of ["GET", "PUT", "DELETE"])
    expect((await fetch(`${two.url}/_kit/nodes/abort`, { method, headers: authorized })).status).toBe(403);
  const plain = await fetch(`${two.url}/_kit/nodes/prompt`, {
    method: "POST",
    body: target,
    headers: authorized,
  });
  expect([plain.status, await plain.json()]).toMatchObject([403, { error: { type: "forbidden" } }]);
});

test("a signed call is answered once: the same bytes are refused when they are sent again", async () => {
  const target = JSON.stringify({ agent: "echo", instance_id: await two.owned("echo") });
  const sent = { body: target, at: two.cluster.now(), nonce: randomUUID() };
  expect((await call(two, sent)).status).toBe(200);
  for (let time = 0; time < 3; time += 1) expect((await call(two, sent)).status).toBe(403);
  expect((await call(two, { ...sent, nonce: randomUUID() })).status).toBe(200);
});

test("used signatures are remembered for as long as they are valid, and in bounded memory", () => {
  const used = new UsedSignatures();
  expect([used.use("a", 0), used.use("a", 1_000), used.use("a", 59_999)]).toEqual([true, false, false]);
  expect(used.use("b", 60_001)).toBe(true);
  expect(used.use("a", 60_001)).toBe(true);
  for (let number = 0; number < 200_000; number += 1) used.use(`${number}`, 60_002);
  expect(used.use("a", 60_002)).toBe(true);
  expect(used.use("199999", 60_002)).toBe(false);
});

test("a call for another node is not answered, and one for an instance of a third node is not forwarded", async () => {
  const target = JSON.stringify({ agent: "echo", instance_id: await two.owned("echo") });
  expect((await call(one, { body: target, node: two.cluster.node })).status).toBe(503);
  // Signed for this node, which does not own the instance: it says so, and asks no other.
  expect(await (await call(one, { body: target })).text()).toContain('{"is":"elsewhere"}');
});

test("a signature covers the call, its node, its time and its body", () => {
  const signed = { name: "prompt", node: "n1", at: 1_000, digest: digestOf("{}"), nonce: "n" };
  const signature = signCall("secret", signed);
  const how = { secret: "secret", now: 1_500 };
  expect(isSigned(signed, signature, how)).toBe(true);
  for (const other of [
    { name: "abort" },
    { node: "n2" },
    { at: 1_001 },
    { digest: digestOf("[]") },
    { nonce: "m" },
  ])
    expect(isSigned({ ...signed, ...other }, signature, how)).toBe(false);
  expect(isSigned(signed, signature, { ...how, now: 60_000 })).toBe(false);
  expect(isSigned(signed, "", how)).toBe(false);
  expect(isSigned(signed, signature, { ...how, secret: "" })).toBe(false);
});

test("keys and permissions are checked once, on the node of the client; headers of nodes grant nothing", async () => {
  const id = await two.owned("echo");
  const body = { message: "Hello." };
  expect((await one.send(`/agents/echo/${id}`, { body })).status).toBe(401);
  expect(
    (
      await one.send(`/agents/echo/${id}`, {
        body,
        headers: { "kit-node": two.cluster.node, "kit-node-signature": "x" },
      })
    ).status,
  ).toBe(401);
  expect((await one.send("/agents/echo/private", { body, headers: authorized })).status).toBe(403);
  expect((await one.send(`/agents/echo/${id}`, { body, headers: authorized })).body.result.text).toBe(
    "Hello.",
  );
});

test("a body of the maximum size reaches the owner, and a larger one is refused on the node of the client", async () => {
  const message = "x".repeat(10 * 1024 * 1024);
  const id = await two.owned("echo", 1);
  const reply = await one.send(`/agents/echo/${id}`, { body: { message }, headers: authorized });
  // The model has said it again, which is more than kit takes of a model.
  expect(reply.body.error).toMatchObject({
    type: "budget_exceeded",
    message: expect.stringContaining("4000000"),
  });
  const larger = await one.send(`/agents/echo/${id}`, {
    body: { message: message + message },
    headers: authorized,
  });
  expect([larger.status, larger.body.error.type]).toEqual([413, "payload_too_large"]);
});

test("the prompt of a client that stops reading is aborted, and fills the memory of neither node", async () => {
  const id = await two.owned("echo", 2);
  const body = JSON.stringify({ message: "long" });
  const sockets: Socket[] = [];
  const prompt = (): void => {
    const socket = connect(one.port, "127.0.0.1");
    sockets.push(socket);
    socket.write(
      `POST /agents/echo/${id} HTTP/1.1\r\nhost: 127.0.0.1\r\n${`authorization: ${authorized.authorization}`}\r\naccept: text/event-stream\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    socket.pause();
  };
  prompt();
  // A busy node can refuse a prompt, and this client does not read that.
  const repeating = setInterval(prompt, 10_000);
  onTestFinished(() => {
    clearInterval(repeating);
    for (const socket of sockets) socket.destroy();
  });
  await vi.waitFor(async () => {
    const { messages } = (await two.send(`/agents/echo/${id}/history`, { headers: authorized })).body;
    expect(messages?.at(-1)).toMatchObject({ role: "assistant" });
  }, 50_000);
});

test("a slow reader of events gets all of them, in their order", async () => {
  const id = await two.owned("echo", 3);
  const path = `/agents/echo/${id}`;
  const reader = await one.stream(`${path}/events`, { headers: authorized });
  await two.send(path, { body: { message: "long" }, headers: authorized });
  let text = "";
  const chunks = reader.body?.pipeThrough(new TextDecoderStream());
  for await (const chunk of chunks ?? []) {
    text += chunk;
    if (text.length < 200_000) await new Promise((resolve) => setTimeout(resolve, 5));
    if (text.includes("event: operation\n")) break;
  }
  const indexes = [...text.matchAll(/^id: (\d+)$/gm)].map(([, index]) => Number(index));
  expect(indexes).toEqual(indexes.toSorted((before, after) => before - after));
  expect(text).toContain("word 1999 ");
});

test("a silent node counts as lost once the database no longer knows it", async () => {
  const silent = createServer((_, reply) => {
    reply.writeHead(200, { "content-type": "application/x-ndjson" }).write('{"is":"here"}\n');
  }).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const address = silent.address();
  const port = typeof address === "object" ? address?.port : 0;
  const gone: ClusterNode = { node: "gone", host: "far", address: `http://127.0.0.1:${port}` };
  const client = new NodeClient(one.cluster);
  const answer = client.ask(gone, { name: "abort", request: { agent: "echo", instance_id: "i" } });
  await expect(answer).rejects.toBeInstanceOf(NodeLost);
  client.close();
  silent.closeAllConnections();
  silent.close();
});

test("a node that has answered does not count as lost if this machine was frozen before it read the answer", async () => {
  let reply: ServerResponse | undefined;
  const other = createServer((_, response) => {
    reply = response.writeHead(200, { "content-type": "application/x-ndjson" });
    reply.write('{"is":"here"}\n');
  }).listen(0, "127.0.0.1");
  await once(other, "listening");
  const address = other.address();
  const port = typeof address === "object" ? address?.port : 0;
  const node: ClusterNode = { node: "other", host: "far", address: `http://127.0.0.1:${port}` };
  const client = new NodeClient(one.cluster, { silenceMs: 300 });
  const taken = Promise.withResolvers<void>();
  const answer = client.ask(
    node,
    { name: "abort", request: { agent: "echo", instance_id: "i" } },
    { onTaken: taken.resolve },
  );
  answer.catch(() => undefined);
  await taken.promise;
  reply?.end('{"is":"result","value":true}\n');
  standStill(600);
  try {
    expect(await answer).toBe(true);
  } finally {
    client.close();
    other.closeAllConnections();
    other.close();
  }
});

test("an address without a listener is tried again, and in the end reported as unavailable", async () => {
  await two.cluster.announce("http://127.0.0.1:9");
  const id = await two.owned("echo", 4);
  // Until the other node has heard of it, it calls the address of before.
  await expect
    .poll(() => one.cluster.owner({ agent: "echo", instance_id: id }))
    .toMatchObject({ address: "http://127.0.0.1:9" });
  const began = performance.now();
  const reply = one.send(`/agents/echo/${id}`, { body: { message: "Hello." }, headers: authorized });
  setTimeout(() => void two.cluster.announce(two.url), 700);
  expect((await reply).body.result.text).toBe("Hello.");
  expect(performance.now() - began).toBeGreaterThan(600);
});

test("other nodes reach a server at its own address, or at an address of its machine", () => {
  const at = (host: string) => reachableAt({ host, port: 2024, url: "" });
  expect(at("127.0.0.1")).toBe("http://127.0.0.1:2024");
  expect(at("10.0.0.7")).toBe("http://10.0.0.7:2024");
  expect(at("fd00::7")).toBe("http://[fd00::7]:2024");
  expect(at("0.0.0.0")).toMatch(/^http:\/\/\d+\.\d+\.\d+\.\d+:2024$/);
});
