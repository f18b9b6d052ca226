import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { startPostgres } from "../../src/testing/postgres-server.ts";
import { openWay } from "../../src/testing/way-to-server.ts";
import { createRandom } from "./seeded-random.ts";
import { createFaultProject, type FaultProject } from "./service/fault-project.ts";
import { type Answer, send, untilSettled } from "./service/requests.ts";

const random = createRandom(Number(process.env.KIT_FAULT_SEED ?? 1));
const rounds = Math.min(6, Number(process.env.KIT_FAULT_ROUNDS ?? 1));
/** Longer than kit waits for a lock, and longer than the only attempt with `max_attempts = 1`. */
const outageMs = 7_000 * rounds;

interface History {
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
}

/** The numbers in the clients' messages; messages of kit have none. */
async function inputsOf(url: string, id: string): Promise<readonly string[]> {
  const { body } = await send(`${url}/agents/worker/${id}/history`);
  const { messages } = body as History;
  return messages.flatMap(({ role, content }) => {
    const [number] = /#\d+/.exec(JSON.stringify(content)) ?? [];
    return role === "user" && number !== undefined ? [number] : [];
  });
}

/** Accepts work of each kind, makes the store unavailable for a while, and checks that each input was done once. */
async function workThroughOutage(
  { kit: { url, stderr } }: FaultProject,
  store: { readonly go: () => Promise<void>; readonly come: () => Promise<void> },
): Promise<void> {
  const dispatch = (id: string, number: number): Promise<Answer> =>
    send(`${url}/agents/worker/${id}/dispatch`, { input: `#${number}` });
  await dispatch("before", 1);
  await untilSettled(url);
  await store.go();
  const accepted = await Promise.all([1, 2, 3, 4, 5].map((number) => dispatch(`w${number}`, number)));
  const run = await send(`${url}/workflows/order`, { number: 8 });
  const withKey = { "idempotency-key": "k" };
  const prompt = send(`${url}/agents/worker/keyed`, { message: "#6" }, withKey);
  await delay(outageMs);
  const refused = await send(`${url}/agents/worker/plain`, { message: "#7" });
  expect(refused).toMatchObject({ status: 503, body: { error: { type: "store_unavailable" } } });
  await store.come();
  await untilSettled(url);
  for (const { body } of accepted) {
    const record = await send(`${url}/dispatches/${body.dispatch_id}`);
    expect(record.body).toMatchObject({ status: "completed", attempts: 1 });
  }
  expect((await prompt).status).toBe(200);
  expect((await send(`${url}/agents/worker/keyed`, { message: "#6" }, withKey)).body).toEqual(
    (await prompt).body,
  );
  await expect.poll(async () => (await send(`${url}/runs/${run.body.run_id}`)).body.status).toBe("completed");
  for (const id of ["before", "w1", "w2", "w3", "w4", "w5", "keyed", "order-8"]) {
    expect([id, await inputsOf(url, id)]).toEqual([id, [expect.any(String)]]);
  }
  expect(stderr()).toContain("Accepted work waits for it");
}

test("a session store that another program locks for long causes no dead letters", async () => {
  const project = await createFaultProject(random, { engine: "max_attempts = 1" });
  await project.kit.start();
  let other: DatabaseSync | undefined;
  await workThroughOutage(project, {
    async go() {
      other = new DatabaseSync(join(project.root, ".kit/sessions.db"));
      other.exec("BEGIN IMMEDIATE");
    },
    async come() {
      other?.exec("COMMIT");
      other?.close();
    },
  });
});

/** A Postgres behind a proxy that can disconnect or hang. */
async function startFarPostgres() {
  const postgres = await startPostgres();
  onTestFinished(() => postgres.stop());
  const relay = await openWay(new URL(postgres.url));
  onTestFinished(() => relay.close());
  return relay;
}

test("a Postgres that is down for long causes no dead letters, and two servers on it record no input twice", async () => {
  const relay = await startFarPostgres();
  const project = await createFaultProject(random, { engine: "max_attempts = 1", store: relay.url });
  await project.kit.start();
  await workThroughOutage(project, {
    go: relay.close,
    come: relay.open,
  });
  // Another server, with its own engine, over the same sessions.
  const other = await project.another({ ownEngine: true });
  await other.start();
  const urls = [project.kit.url, other.url];
  const numbers = Array.from({ length: 12 * rounds }, (_, index) => 100 + index);
  const replies = await Promise.all(
    numbers.map((number) => send(`${urls[number % 2]}/agents/worker/shared`, { message: `#${number}` })),
  );
  expect(replies.map(({ status }) => status)).toEqual(numbers.map(() => 200));
  for (const url of urls) {
    const inputs = await inputsOf(url, "shared");
    expect(inputs.toSorted()).toEqual(numbers.map((number) => `#${number}`));
  }
  expect(project.model.refused).toEqual([]);
});

test("when Postgres hangs, requests fail within seconds, a stop does not wait, and work continues once it answers", async () => {
  const relay = await startFarPostgres();
  const project = await createFaultProject(random, { engine: "max_attempts = 1", store: relay.url });
  const { kit } = project;
  await kit.start();
  const dispatch = (id: string): Promise<Answer> =>
    send(`${kit.url}/agents/worker/${id}/dispatch`, { input: "#1" });
  await dispatch("before");
  await untilSettled(kit.url);
  relay.freeze();
  const begun = performance.now();
  const accepted = await dispatch("during");
  expect(accepted.status).toBe(202);
  const slow = await send(`${kit.url}/agents/worker/plain`, { message: "#2" });
  expect(slow).toMatchObject({ status: 503, body: { error: { type: "store_unavailable" } } });
  // Postgres stays frozen: a request without a time limit would wait until the end of the test.
  const waited = performance.now() - begun;
  const quick = performance.now();
  const refused = await send(`${kit.url}/agents/worker/plain`, { message: "#2" });
  expect(refused.body.error).toMatchObject({
    details: expect.stringMatching(/^The session store is away since 20.*Try again in/),
  });
  expect(performance.now() - quick).toBeLessThan(waited / 2);
  const stopping = performance.now();
  await kit.end("SIGTERM");
  // A drain that waits for running work takes thirty seconds.
  expect(performance.now() - stopping).toBeLessThan(20_000);
  await kit.start();
  relay.thaw();
  await untilSettled(kit.url);
  expect((await send(`${kit.url}/dispatches/${accepted.body.dispatch_id}`)).body).toMatchObject({
    status: "completed",
    attempts: 1,
  });
  expect(await inputsOf(kit.url, "during")).toEqual(["#1"]);
});

test("two servers with separate engines on one file of sessions record no input twice", async () => {
  const project = await createFaultProject(random);
  const other = await project.another({ ownEngine: true });
  await Promise.all([project.kit.start(), other.start()]);
  const urls = [project.kit.url, other.url];
  const numbers = Array.from({ length: 20 * rounds }, (_, index) => 100 + index);
  await Promise.all(
    numbers.map((number) =>
      send(`${urls[number % 2]}/agents/worker/shared/dispatch`, { input: `#${number}` }),
    ),
  );
  await Promise.all(urls.map(untilSettled));
  for (const url of urls) {
    const inputs = await inputsOf(url, "shared");
    expect(inputs.toSorted()).toEqual(numbers.map((number) => `#${number}`));
    const { body } = await send(`${url}/dispatches?status=failed`);
    expect(body.dispatches).toEqual([]);
  }
  expect(project.model.refused).toEqual([]);
});

test.each(["", "sessions.db", "engine", "engine/engine.db"])(
  "a running server whose .kit/%s is deleted refuses requests, reports the reason, and stops at once",
  async (name) => {
    const project = await createFaultProject(random);
    const { kit } = project;
    await kit.start();
    const dispatch = (id: string): Promise<Answer> =>
      send(`${kit.url}/agents/worker/${id}/dispatch`, { input: "#1" });
    await dispatch("before");
    await untilSettled(kit.url);
    expect((await send(`${kit.url}/health`)).status).toBe(200);
    rmSync(join(project.root, ".kit", name), { recursive: true });
    const gone = {
      status: 503,
      body: { error: { type: "store_unavailable", message: expect.stringContaining("restart kit") } },
    };
    if (name !== "sessions.db") {
      expect(await dispatch("after")).toMatchObject(gone);
      expect(await send(`${kit.url}/workflows/order`, { number: 1 })).toMatchObject(gone);
    }
    expect(await send(`${kit.url}/agents/worker/after`, { message: "#3" })).toMatchObject(
      name === "engine" || name === "engine/engine.db" ? { status: 200 } : gone,
    );
    expect(await send(`${kit.url}/health`)).toMatchObject(gone);
    await expect.poll(() => kit.stderr()).toContain("deleted, moved or replaced");
    // The command line still finds the server, and can show its problem.
    await expect.poll(() => existsSync(join(project.root, ".kit/servers"))).toBe(true);
    const begun = performance.now();
    await kit.end("SIGTERM");
    expect(performance.now() - begun).toBeLessThan(10_000);
  },
  60_000,
);

test("a server continues with a restored folder", async () => {
  const project = await createFaultProject(random);
  const { kit, root } = project;
  await kit.start();
  const { body } = await send(`${kit.url}/agents/worker/one/dispatch`, { input: "#1" });
  await untilSettled(kit.url);
  const folder = join(root, ".kit/engine");
  renameSync(folder, join(root, "away"));
  expect((await send(`${kit.url}/agents/worker/two/dispatch`, { input: "#2" })).status).toBe(503);
  renameSync(join(root, "away"), folder);
  expect((await send(`${kit.url}/health`)).status).toBe(200);
  expect((await send(`${kit.url}/agents/worker/three/dispatch`, { input: "#3" })).status).toBe(202);
  await untilSettled(kit.url);
  expect((await send(`${kit.url}/dispatches/${body.dispatch_id}`)).body.status).toBe("completed");
});
