import { vi } from "vitest";
import { createApprovals } from "../../agents/approvals/approvals.ts";
import { createService } from "../../app/service/create-service.ts";
import type { EngineCluster } from "../../engine/cluster.ts";
import { createPostgresEngine } from "../../engine/postgres/create-postgres-engine.ts";
import { PostgresSessionStore } from "../../stores/postgres/postgres-store.ts";
import { openTestParts } from "../../testing/test-app.ts";
import { type ServedService, serveService } from "./serve-service.ts";

export interface ServedNode extends ServedService {
  readonly cluster: EngineCluster;
  /** An instance of an agent that this node owns. Waits for shards: a node that stood still has given its own up. */
  owned(agent: string, count?: number): Promise<string>;
}

type ServeOptions = Omit<NonNullable<Parameters<typeof serveService>[0]>, "openService">;

/** Serves one node of a cluster, with all that `serveService` serves; nodes of one schema share their work. */
export async function serveNode(
  { url, schema }: { readonly url: string; readonly schema: string },
  options: ServeOptions = {},
): Promise<ServedNode> {
  let cluster: EngineCluster | undefined;
  const served = await serveService({
    ...options,
    async openService({ root, model }) {
      const store = new PostgresSessionStore({ url, schema });
      const parts = await openTestParts({ root, model, store });
      const engine = await createPostgresEngine({ url, schema });
      cluster = engine.cluster;
      const service = await createService({ ...parts, approvals: createApprovals() }, { engine });
      return {
        ...service,
        async close() {
          await service.close({ timeoutMs: 0 });
          await store.close();
        },
      };
    },
  });
  if (cluster === undefined) throw new Error("The engine has no cluster.");
  const nodeCluster = cluster;
  return {
    ...served,
    cluster: nodeCluster,
    async owned(agent, count = 0) {
      const ids = Array.from({ length: 1_000 }, (_, number) => `i${number}`);
      return await vi.waitFor(
        () => {
          const instanceId = ids.filter((instance_id) => nodeCluster.owns({ agent, instance_id }))[count];
          if (instanceId === undefined) throw new Error("The node owns too few instances.");
          return instanceId;
        },
        { timeout: 30_000 },
      );
    },
  };
}

/** Serves several nodes, and waits until each owns its share. */
export async function serveCluster(
  target: { readonly url: string; readonly schema: string },
  count = 2,
  options: ServeOptions = {},
): Promise<readonly ServedNode[]> {
  const nodes: ServedNode[] = [];
  for (let number = 0; number < count; number += 1) nodes.push(await serveNode(target, options));
  const ids = Array.from({ length: 200 }, (_, number) => ({ run_id: `${number}` }));
  for (let rounds = 0; rounds < 200; rounds += 1) {
    const shares = nodes.map(({ cluster }) => ids.filter((owned) => cluster.owns(owned)).length);
    if (shares.every((share) => share > 100 / count)) return nodes;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("The nodes did not share the work.");
}
