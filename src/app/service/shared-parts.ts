import { type Approvals, createApprovals } from "../../agents/approvals/approvals.ts";
import type { Engine } from "../../engine/contract.ts";
import type { ServiceCluster } from "../cluster/service-cluster.ts";
import type { RuntimeParts } from "../runtime/agent-factory.ts";
import type { FencedStore } from "./fenced-store.ts";
import type { WorkSlots } from "./resting-work.ts";
import { createSharedApprovals } from "./shared-approvals.ts";

/** The parts of a service that differ if other machines share its work. */
export interface SharedParts {
  readonly parts: RuntimeParts;
  /** The engine; in a cluster, its events are those of all nodes. */
  readonly engine: Engine;
  readonly approvals: Approvals;
  readonly nodes: ServiceCluster | undefined;
  /** The store of a node, which names its lease in each append. */
  readonly fenced: FencedStore | undefined;
}

/** Adapts the parts to the engine. A project of one machine does not load the code for a cluster. */
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
): Promise<SharedParts> {
  const { cluster, events, capabilities } = engine;
  const fenced = capabilities.distributed
    ? new (await import("./fenced-store.ts")).FencedStore(runtimeParts.store)
    : undefined;
  const local = runtimeParts.approvals ?? createApprovals();
  const approvals = createSharedApprovals(local, { engine, slots });
  let nodes: ServiceCluster | undefined;
  if (cluster !== undefined) {
    const { ServiceCluster } = await import("../cluster/service-cluster.ts");
    nodes = new ServiceCluster({ cluster, events, address });
  }
  return {
    parts: {
      ...runtimeParts,
      store: fenced?.store ?? runtimeParts.store,
      // Without approvals, calls that need one are denied at once.
      approvals: runtimeParts.approvals && approvals,
    },
    engine: nodes === undefined ? engine : { ...engine, events: nodes.events },
    approvals,
    nodes,
    fenced,
  };
}
