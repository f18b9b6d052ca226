import { type Approvals, createApprovals } from "../../agents/approvals/approvals.ts";
import type { Engine } from "../../engine/contract.ts";
import { ServiceCluster } from "../cluster/service-cluster.ts";
import type { RuntimeParts } from "../runtime/agent-factory.ts";
import { FencedStore } from "./fenced-store.ts";
import { createSharedApprovals } from "./shared-approvals.ts";

/** The parts of a service, as far as they depend on whether other machines share its work. */
export interface SharedParts {
  readonly parts: RuntimeParts;
  /** The engine, with the events that any node of a cluster knows. */
  readonly engine: Engine;
  readonly approvals: Approvals;
  readonly nodes: ServiceCluster | undefined;
  /** The store of a node that says with each append which lease it holds. */
  readonly fenced: FencedStore | undefined;
}

export function toSharedParts(
  given: RuntimeParts,
  { engine, nodeAddress: address }: { readonly engine: Engine; readonly nodeAddress?: string | undefined },
): SharedParts {
  const { cluster, events, capabilities } = engine;
  const fenced = capabilities.distributed ? new FencedStore(given.store) : undefined;
  const nodes = cluster && new ServiceCluster({ cluster, events, address });
  const local = given.approvals ?? createApprovals();
  const approvals = cluster === undefined ? local : createSharedApprovals(local, cluster.waitingCalls);
  return {
    parts: {
      ...given,
      store: fenced?.store ?? given.store,
      // Without approvals, calls that need one are denied at once.
      approvals: given.approvals && approvals,
    },
    engine: nodes === undefined ? engine : { ...engine, events: nodes.events },
    approvals,
    nodes,
    fenced,
  };
}
