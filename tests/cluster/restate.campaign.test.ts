import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { shardOf } from "../../src/engine/postgres/shards.ts";
import { collectEvents, readEventStream } from "../../src/server/testing/read-event-stream.ts";
import { hasRestate } from "../../src/testing/restate-server.ts";
import { answerTo } from "../faults/service/model-server.ts";
import { RestateEngine } from "./harness/engines.ts";
import { type Kit, Kits, type Load } from "./harness/kits.ts";

const engine = new RestateEngine();
let cluster: Kits;
let kits: readonly [Kit, Kit];

async function checkEnd(load: Load): Promise<void> {
  await cluster.settled(load);
  expect(await cluster.findings(load)).toEqual([]);
}

/** The node that owns an instance now. */
async function ownerOf(kit: Kit, path: string): Promise<Kit> {
  let owner: Kit | undefined;
  await cluster.until(() => {
    const line = path.split("/").at(-1);
    const begun = cluster.effects().findLast((entry) => entry.what === "begin" && entry.line === line);
    owner = cluster.kits.find(({ process }) => process.pid === begun?.node);
    return owner !== undefined;
  });
  return owner ?? kit;
}

const sse = { accept: "text/event-stream" };

function post(kit: Kit, path: string, { body, headers = {} }: { body: unknown; headers?: object }) {
  return fetch(`${kit.process.url}${path}`, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", ...headers },
  });
}

describe.skipIf(!hasRestate)(
  "Two kit start that Restate calls, with the server of npm run test:vendors",
  () => {
    beforeAll(async () => {
      cluster = await Kits.start(engine, 2);
      kits = cluster.kits as unknown as typeof kits;
    });

    afterEach(() => cluster.heal());

    afterAll(() => cluster?.stop());

    test("prompts and streams go through the node that does not own the instance, and survive its owner", async () => {
      const path = "/agents/worker/hop-1500ms";
      const reply = post(kits[0], path, { body: { message: "#1" }, headers: { "idempotency-key": "one" } });
      const owner = await ownerOf(kits[0], path);
      const other = kits.find((kit) => kit !== owner) as Kit;
      const live = await fetch(`${other.process.url}${path}/events`, { headers: sse });
      const seen: string[] = [];
      const reading = (async () => {
        for await (const { event } of readEventStream(live)) {
          seen.push(event);
          if (event === "operation") return;
        }
      })();
      expect(await (await reply).text()).toContain(answerTo("#1"));
      await reading;
      expect(seen).toContain("text_delta");
      const streamed = collectEvents(await post(other, path, { body: { message: "#2" }, headers: sse }));
      expect((await streamed).at(-1)).toMatchObject({
        event: "result",
        data: { result: { text: answerTo("#2") } },
      });
      const answer = post(other, path, {
        body: { message: "#3" },
        headers: { ...sse, "idempotency-key": "three" },
      });
      await cluster.until(
        () =>
          cluster.effects().filter(({ line, what }) => line === "hop-1500ms" && what === "begin").length > 2,
      );
      await cluster.kill(await ownerOf(other, path));
      const events = await collectEvents(await answer);
      expect(events.at(-1)).toMatchObject({ event: "result", data: { result: { text: answerTo("#3") } } });
    });

    test("any node answers for an instance without an owner, at first and once the instance rests", async () => {
      const path = "/agents/worker/rest-0ms";
      const first = await post(kits[0], path, { body: { message: "#1" } });
      expect(await first.text()).toContain(answerTo("#1"));
      const shard = shardOf({ agent: "worker", instance_id: "rest-0ms" });
      // A node releases a shard that has rested for ten seconds.
      await cluster.until(async () => {
        const { rows } = await cluster.database.query(
          "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND classid = hashtext('kit shards of \"kit\"')::oid",
          [shard],
        );
        return rows.length === 0;
      });
      for (const kit of kits) {
        const history = await fetch(`${kit.process.url}${path}/history`);
        expect(await history.text()).toContain(answerTo("#1"));
      }
      const second = await post(kits[1], path, { body: { message: "#2" } });
      expect(await second.text()).toContain(answerTo("#2"));
      const third = await post(kits[0], path, { body: { message: "#3" } });
      expect(await third.text()).toContain(answerTo("#3"));
    });

    test("dispatches and a run with a timer and a signal survive the kill of a node", async () => {
      const load = cluster.load({ lines: 6, each: 3, ms: 100 });
      const run = { number: 1, waits: true, steps: 5, ms: 150 };
      const { run_id } = await cluster.ask("/workflows/steps", { body: run, key: "run 1" });
      const steps = () => cluster.effects().filter(({ line, what }) => line === "run-1" && what === "begin");
      await cluster.until(() => steps().length > 1);
      await cluster.kill(cluster.kits.find(({ process }) => process.pid === steps()[0]?.node) as Kit);
      await cluster.ask(`/runs/${run_id}/signal`, { body: { name: "go", payload: { went: true } } });
      await cluster.until(async () => (await cluster.ask(`/runs/${run_id}`)).status === "completed");
      expect((await cluster.ask(`/runs/${run_id}`)).result).toEqual({ went: true });
      // Only the interrupted step can have begun twice.
      expect(steps().length).toBeLessThanOrEqual(6);
      expect(new Set(steps().map(({ effect }) => effect)).size).toBe(5);
      await checkEnd(load);
    });

    test("nodes that are stopped under load one after the other exit cleanly, and nothing is done again", async () => {
      const load = cluster.load({ lines: 8, each: 4, ms: 100 });
      await cluster.begun(load, 8);
      expect(await cluster.end(kits[0])).toBe(0);
      await cluster.startKit(kits[0]);
      expect(await cluster.end(kits[1])).toBe(0);
      await cluster.startKit(kits[1]);
      await checkEnd(load);
      const begun = cluster
        .effects()
        .filter(({ what, line }) => what === "begin" && load.lines.includes(line));
      expect(begun.length).toBe(32);
    });

    test("when Postgres is killed and restarted, work continues without help", async () => {
      const load = cluster.load({ lines: 8, each: 3, ms: 100 });
      await cluster.begun(load, 8);
      await cluster.database.kill();
      await delay(1_000);
      await cluster.database.up();
      await checkEnd(load);
    });

    test("a node that is cut off from Restate continues its own work, and other nodes do the rest", async () => {
      const load = cluster.load({ lines: 8, each: 3, ms: 150 });
      const long = cluster.load({ lines: 4, each: 1, ms: 3_000 });
      await cluster.begun(load, 6);
      engine.cut(kits[0]);
      const more = cluster.load({ lines: 6, each: 2, ms: 50 });
      for (const one of [load, long, more]) await checkEnd(one);
      engine.restore(kits[0]);
    });
  },
);
