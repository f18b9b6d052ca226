import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { expect, onTestFinished } from "vitest";
import { campaignTest } from "../../testing/campaign.suite.ts";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { openWay } from "../../testing/way-to-server.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";

const server = postgresForTests();

campaignTest(
  "a node whose event loop is busy for some seconds keeps its shards and its work",
  async () => {
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
  },
  60_000,
);

campaignTest(
  "a node whose own connection hangs, while its heartbeats arrive, connects again and keeps its work",
  async () => {
    const way = await openWay(new URL(server.url));
    const admin = new pg.Client({ connectionString: server.url });
    await admin.connect();
    onTestFinished(() => admin.end());
    onTestFinished(() => way.close());
    const engine = await createPostgresEngine({ url: server.url, directUrl: way.url, schema: "hung" });
    onTestFinished(() => engine.drain({ timeoutMs: 0 }));
    const done = Promise.withResolvers<void>();
    await engine.start({
      async dispatch(_, { input }) {
        if (input === "long") await done.promise;
      },
      run: async () => null,
    });
    const key = { agent: "a", session: "default" };
    const { dispatch_id } = await engine.admit({ ...key, instance_id: "long", input: "long" });
    const { rows } = await admin.query(
      "SELECT client_port FROM hung.nodes JOIN pg_stat_activity ON pid = backend",
    );
    // The thread connects once its first heartbeat is due.
    await sleep(1_000);
    way.hang(Number(rows[0]?.client_port));
    const from = performance.now();
    for (let number = 0; performance.now() - from < 5_000; number += 1) {
      const next = await engine.admit({ ...key, instance_id: `next-${number}`, input: 1 });
      const sentAt = performance.now();
      expect(await engine.awaitDispatch(next.dispatch_id)).toMatchObject({ status: "completed" });
      expect(performance.now() - sentAt).toBeLessThan(4_000);
      await sleep(300);
    }
    done.resolve();
    expect(await engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed", attempts: 1 });
  },
  60_000,
);
