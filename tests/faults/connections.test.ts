import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { createRandom } from "./seeded-random.ts";
import { createFaultProject } from "./service/fault-project.ts";
import { answerTo, longAnswer } from "./service/model-server.ts";
import { send } from "./service/requests.ts";

const rounds = Number(process.env.KIT_FAULT_ROUNDS ?? 0);
const seed = Number(process.env.KIT_FAULT_SEED ?? 1);
const open = rounds > 0 ? 1_000 : 200;

/** A raw connection of a client that stops reading, or vanishes. */
async function request(port: number, lines: string, body = ""): Promise<Socket> {
  const socket = connect({ host: "127.0.0.1", port });
  socket.on("error", () => undefined);
  await once(socket, "connect");
  const length = body === "" ? "" : `content-type: application/json\r\ncontent-length: ${body.length}\r\n`;
  socket.write(`${lines} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n${length}\r\n${body}`);
  return socket;
}

test(`${open} idle event streams and ${open} WebSockets do not prevent work, and are cleaned up`, async () => {
  const { kit } = await createFaultProject(createRandom(seed));
  await kit.start();
  await send(`${kit.url}/agents/worker/warm`, { message: "Hello?" });
  const before = { sockets: kit.sockets(), memory: kit.memoryMb() };
  const streams: Socket[] = [];
  const sockets: WebSocket[] = [];
  for (let index = 0; index < open; index += 1) {
    const stream = await request(kit.port, `GET /agents/worker/idle-${index % 50}/events`);
    await once(stream, "data");
    streams.push(stream);
    const socket = new WebSocket(`${kit.url.replace("http", "ws")}/agents/worker/idle-${index % 50}`);
    await once(socket, "message");
    sockets.push(socket);
  }
  expect(kit.sockets()).toBeGreaterThanOrEqual(2 * open);
  expect(kit.memoryMb() - before.memory).toBeLessThan(100);

  // Each stream of an instance gets the instance's events.
  const received = streams.map(async (stream, index) => {
    if (index % 50 !== 7) return;
    for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
      if (String(chunk).includes("event: idle")) return;
    }
  });
  const { body } = await send(`${kit.url}/agents/worker/idle-7`, { message: "Say it." });
  expect(body.result.text).toBe(answerTo("Say it."));
  await Promise.all(received);

  for (const stream of streams) stream.resetAndDestroy();
  for (const socket of sockets) socket.terminate();
  while (kit.sockets() > before.sockets + 5) await delay(10);
  expect((await send(`${kit.url}/health`)).body).toMatchObject({ ok: true });
});

test("prompts of clients that vanish are aborted, and their sessions are free for others", async () => {
  const random = createRandom(seed);
  const { kit, model } = await createFaultProject(random);
  await kit.start();
  const prompt = JSON.stringify({ message: "endless" });
  const clients = await Promise.all(
    Array.from({ length: 40 }, (_, index) =>
      request(kit.port, `POST /agents/worker/left-${index % 20}`, prompt),
    ),
  );
  // One prompt of each session waits for the model, and another waits in line.
  await model.requested(20);
  for (const client of clients) {
    await delay(random(5));
    if (random(2) === 0) client.resetAndDestroy();
    else client.destroy();
  }
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      send(`${kit.url}/agents/worker/left-${index}`, { message: "Still there?" }),
    ),
  );
  for (const { body } of answers) expect(body.result.text).toBe(answerTo("Still there?"));
  expect(model.abandoned).toBeGreaterThanOrEqual(20);
});

test("readers that stop reading cost little memory, do not delay other readers, and can read all missed events later", async () => {
  const { kit } = await createFaultProject(createRandom(seed));
  await kit.start();
  await send(`${kit.url}/agents/worker/loud`, { message: "long" });
  const before = kit.memoryMb();
  const slow = await Promise.all(
    Array.from({ length: 100 }, () => request(kit.port, "GET /agents/worker/loud/events")),
  );
  for (const socket of slow) socket.pause();
  const prompts = 20;
  for (let time = 0; time < prompts; time += 1) {
    const { body } = await send(`${kit.url}/agents/worker/loud`, { message: "long" });
    expect(body.result.text.length).toBe(longAnswer);
  }
  // 100 readers of about 9 MB each: without limits, the server would buffer 900 MB for them.
  expect(kit.memoryMb() - before).toBeLessThan(500);

  // A reader that continues gets all events, or is disconnected and can resume.
  const [reader] = slow;
  let text = "";
  for await (const chunk of reader ?? []) {
    text += chunk;
    if (text.split("event: operation\n").length > prompts + 1) break;
  }
  const indexes = [...text.matchAll(/^id: (\d+)$/gm)].map(([, index]) => Number(index));
  expect(indexes.length).toBeGreaterThan(0);
  expect(indexes).toEqual([...new Set(indexes)].toSorted((left, right) => left - right));
  for (const socket of slow) socket.destroy();
});
