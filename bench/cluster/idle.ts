/** `node bench/cluster/idle.ts [nodes …]` (5 20): the load of idle nodes on Postgres. All nodes are in this process. */
import { setTimeout as delay } from "node:timers/promises";
import { createPostgresEngine } from "../../src/engine/postgres/create-postgres-engine.ts";
import { Database } from "../../tests/cluster/harness/database.ts";
import { processorMs, withChildren } from "./processor-time.ts";

const counts = process.argv.slice(2).map(Number);
const seconds = 5;

for (const count of counts.length === 0 ? [5, 20] : counts) {
  const database = await Database.start(["max_connections=1000"]);
  const nodes = await Promise.all(
    Array.from({ length: count }, () => createPostgresEngine({ url: database.url })),
  );
  for (const node of nodes) await node.start({ dispatch: async () => null, run: async () => undefined });
  await delay(3_000);
  const before = processorMs(withChildren(database.pid));
  await delay(seconds * 1_000);
  const used = processorMs(withChildren(database.pid)) - before;
  console.log(
    `${count} nodes at rest: ${(used / seconds / count).toFixed(2)} ms of Postgres a second for each`,
  );
  await Promise.all(nodes.map((node) => node.drain({ timeoutMs: 0 })));
  await database.remove();
}
