import { type Approvals, createApprovals } from "../../agents/approvals/approvals.ts";
import type { Engine } from "../../engine/contract.ts";
import type { ServiceCluster } from "../cluster/service-cluster.ts";
import type { RuntimeParts } from "../runtime/agent-factory.ts";
import type { FencedStore } from "./fenced-store.ts";

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

/** A project of one machine does not load the code for several. */
export async function toSharedParts(
  given: RuntimeParts,
  { engine, nodeAddress: address }: { readonly engine: Engine; readonly nodeAddress?: string | undefined },
): Promise<SharedParts> {
  const { cluster, events, capabilities } = engine;
  const fenced = capabilities.distributed
    ? new (await import("./fenced-store.ts")).FencedStore(given.store)
    : undefined;
  const local = given.approvals ?? createApprovals();
  let approvals = local;
  let nodes: ServiceCluster | undefined;
  if (cluster !== undefined) {
    const [{ ServiceCluster }, { createSharedApprovals }] = await Promise.all([
      import("../cluster/service-cluster.ts"),
      import("./shared-approvals.ts"),
    ]);
    nodes = new ServiceCluster({ cluster, events, address });
    approvals = createSharedApprovals(local, cluster.waitingCalls);
  }
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
