import { type Approvals, createApprovals, notWaiting } from "../../agents/approvals/approvals.ts";
import { willResume } from "../../agents/log/suspension.ts";
import type { WaitingCalls } from "../../engine/cluster.ts";
import type { Engine } from "../../engine/contract.ts";
import type { ServiceCluster } from "../cluster/service-cluster.ts";
import type { RuntimeParts } from "../runtime/agent-factory.ts";
import type { FencedStore } from "./fenced-store.ts";

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

/** Adapts the parts to a cluster. A project of one machine does not load the code for it. */
export async function toSharedParts(
  runtimeParts: RuntimeParts,
  { engine, nodeAddress: address }: { readonly engine: Engine; readonly nodeAddress?: string | undefined },
): Promise<SharedParts> {
  const { cluster, events, capabilities } = engine;
  const fenced = capabilities.distributed
    ? new (await import("./fenced-store.ts")).FencedStore(runtimeParts.store)
    : undefined;
  const local = runtimeParts.approvals ?? createApprovals();
  let approvals = local;
  let nodes: ServiceCluster | undefined;
  if (cluster !== undefined) {
    const { ServiceCluster } = await import("../cluster/service-cluster.ts");
    nodes = new ServiceCluster({ cluster, events, address });
    approvals = createSharedApprovals(local, cluster.waitingCalls);
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

/**
 * Approvals that any node of a cluster can list and decide. A call waits in the memory of the node that works on it and
 * in a database row. The first decision written to the row counts; if the node has died, the node that resumes the
 * operation reads the decision there.
 */
function createSharedApprovals(local: Approvals, calls: WaitingCalls): Approvals {
  calls.onDecided((approvalId, decision) => {
    // The call can end at the same moment.
    local.decide(approvalId, decision).catch(() => undefined);
  });
  const { timeoutMs } = local;
  return {
    timeoutMs,
    async request(request, signal, maySuspend) {
      signal.throwIfAborted();
      const { approval_id } = request;
      const decided = await calls.add(request);
      if (decided !== undefined) return decided;
      try {
        const decision = await local.request(request, signal, maySuspend);
        // A decision written before the call expired counts: its sender got a reply that says so.
        return (await calls.remove(approval_id)) ?? decision;
      } catch (error) {
        // The resumed operation adds the call again, here or on another node.
        const leaving = willResume(signal) ? calls.leave(approval_id) : calls.withdraw(approval_id);
        await leaving.catch(() => undefined);
        throw error;
      }
    },
    async decide(approvalId, decision, within = {}) {
      if (!(await calls.decide(approvalId, decision, within))) throw notWaiting();
    },
    list: async (filter = {}) => await calls.list(filter),
  };
}
