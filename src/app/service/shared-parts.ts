import { createApprovals } from "../../agents/approvals/approvals.ts";
import type { Engine } from "../../engine/contract.ts";
import { type Fences, type Owners, SoleFence, SoleOwner } from "../cluster/owners.ts";
import type { ServiceCluster } from "../cluster/service-cluster.ts";
import type { RuntimeParts } from "../runtime/agent-factory.ts";
import { createSharedApprovals } from "./shared-approvals.ts";
import type { WorkSlots } from "./work-slots.ts";

/**
 * Adapts the parts to the engine: only this function asks whether other machines share its work. In a cluster, the events of the
 * returned engine are those of all nodes. A project of one machine does not load the code for a cluster.
 */
export async function toSharedParts(
  runtimeParts: RuntimeParts,
  {
    engine,
    nodeAddress: address,
    slots,
  }: {
    readonly engine: Engine;
    readonly nodeAddress?: string | undefined;
    readonly slots: Pick<WorkSlots, "workOf">;
  },
) {
  const { cluster, events, capabilities } = engine;
  const { store } = runtimeParts;
  const fences: Fences = capabilities.distributed
    ? new (await import("./fenced-store.ts")).FencedStore(store)
    : new SoleFence(store, capabilities);
  const local = runtimeParts.approvals ?? createApprovals();
  const approvals = createSharedApprovals(local, { engine, slots });
  let nodes: ServiceCluster | undefined;
  if (cluster !== undefined) {
    const { ServiceCluster } = await import("../cluster/service-cluster.ts");
    nodes = new ServiceCluster({ cluster, events, address });
  }
  const owners: Owners = nodes ?? new SoleOwner(events);
  return {
    parts: {
      ...runtimeParts,
      store: fences.store,
      // Without approvals, calls that need one are denied at once.
      approvals: runtimeParts.approvals && approvals,
    },
    engine: nodes === undefined ? engine : { ...engine, events: nodes.events },
    approvals,
    nodes,
    owners,
    fences,
  };
}
