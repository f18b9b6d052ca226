import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type PostgresServer, startPostgres } from "../../testing/postgres-server.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";

let server: PostgresServer;

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(async () => {
  await server?.stop();
});

test("a node whose event loop is busy for some seconds keeps its shards and its work", async () => {
  const options = { url: server.url, schema: "busy" };
  const script = new URL("testing/node-process.ts", import.meta.url);
  const engine = await createPostgresEngine(options);
  onTestFinished(() => engine.drain({ timeoutMs: 0 }));
  const { dispatch_id } = await engine.admit({
    agent: "a",
    instance_id: "i",
    session: "default",
    input: "busy",
  });
  const node: ChildProcess = fork(script, [JSON.stringify(options)], { execArgv: [] });
  onTestFinished(() => void node.kill("SIGKILL"));
  await once(node, "message");
  const begun: string[] = [];
  await engine.start({
    async dispatch({ id }) {
      begun.push(id);
    },
    run: async () => null,
  });
  // Longer than the silence after which a node is removed.
  await sleep(7_000);
  expect(await engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed", attempts: 1 });
  expect(begun).toEqual([]);
}, 60_000);
