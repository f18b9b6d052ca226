import { afterAll, beforeAll, describe } from "vitest";
import { type PostgresServer, startPostgres } from "../../testing/postgres-server.ts";
import { hasRestate, type RestateServers, startRestate } from "../../testing/restate-server.ts";
import { gate, handlers } from "../cases/engine-check.ts";
import type { OpenEventLog } from "../cases/event-log-cases.ts";
import type { Engine, LinePlace } from "../contract.ts";
import { eventLogContract } from "../events.suite.ts";
import { createRestateEngine } from "./create-restate-engine.ts";

let postgres: PostgresServer;
let restate: RestateServers;
let count = 0;

/** The instances whose streams the cases write. A node writes the streams of its work, so each instance has work until the log is closed. */
const written = [
  ["reviewer", "pr-7"],
  ["a", "1"],
  ["a", "11"],
].map(([agent = "", instance_id = ""]) => ({ agent, instance_id, session: "default" }));

async function begin(engine: Engine, session: LinePlace, end: Promise<void>) {
  const begun = gate();
  const ended = engine.inLine(session, async () => {
    begun.open();
    await end;
  });
  await Promise.race([begun.opened, ended]);
  return { ended };
}

async function open(schema: string): Promise<OpenEventLog> {
  const { ingress, admin } = restate;
  const engine = await createRestateEngine({
    url: postgres.url,
    schema,
    restate: { ingress, admin, listen: "127.0.0.1:0" },
  });
  await engine.start(handlers({}));
  const done = gate();
  const work = await Promise.all(written.map((session) => begin(engine, session, done.opened)));
  return {
    log: engine.events,
    settle: () => engine.events.flush(),
    async close() {
      done.open();
      await Promise.all(work.map(({ ended }) => ended));
      await engine.drain({ timeoutMs: 0 });
    },
    reopen: () => open(schema),
  };
}

describe.skipIf(!hasRestate)("With the server of npm run test:vendors", () => {
  beforeAll(async () => {
    [postgres, restate] = await Promise.all([startPostgres(), startRestate()]);
  });

  afterAll(async () => {
    await Promise.all([postgres?.stop(), restate?.stop()]);
  });

  eventLogContract({
    name: "The log of the Restate engine",
    // Each round creates a schema and a cluster of one node.
    rounds: 2,
    create: () => {
      count += 1;
      return open(`events_${count}`);
    },
  });
});
