import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type PostgresServer, startPostgres } from "../../testing/postgres-server.ts";
import { handlers } from "../cases/engine-check.ts";
import { agentStream } from "../contract.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";
import { openEngineDatabase } from "./engine-database.ts";
import { pruneBytes, pruneStreams } from "./event-rows.ts";
import type { PostgresBase } from "./postgres-base.ts";

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(async () => {
  await server?.stop();
});

test("the oldest events go above the limit of a stream, and above that of all bytes; readers are told of the gap", async () => {
  const place = { url: server.url, schema: "event_limits" };
  const engine = await createPostgresEngine(place);
  await engine.start(handlers({}));
  const stream = agentStream("a", "1");
  await engine.events.begin(stream);
  for (let index = 1; index <= 40; index += 1) {
    engine.events.append(stream, {
      type: "log",
      level: "info",
      message: randomBytes(5_000).toString("hex"),
      index,
      timestamp: "2026-01-01T00:00:00.000Z",
      instance_id: "1",
      operation_id: "op",
      session: "default",
    });
    await engine.events.flush();
  }
  const database = await openEngineDatabase(place);
  const base = { database } as PostgresBase;
  const indexes = async () => (await engine.events.read(stream, { limit: 100 })).map(({ index }) => index);
  const limits = { eventsPerStream: 30, eventBytes: 150_000 } as PostgresBase["limits"];
  while (await pruneStreams(base, limits));
  const kept = await database.row<{ events: number; first: number }>(
    "SELECT (SELECT events FROM $s.streams) AS events, (SELECT min(first) FROM $s.batches) AS first",
  );
  expect(kept).toEqual({ events: 30, first: 11 });
  while (await pruneBytes(base, limits));
  const left = await database.row<{ count: number }>("SELECT count(*) FROM $s.batches");
  expect(left?.count).toBeLessThanOrEqual(15);
  expect((await indexes()).at(-1)).toBe(40);
  await engine.drain({ timeoutMs: 0 });
  await database.close();
});
