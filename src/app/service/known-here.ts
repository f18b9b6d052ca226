import type { Engine } from "../../engine/contract.ts";
import { storeUnavailable } from "../../protocol/error-code.ts";
import type { Sources } from "../sources/sources.ts";

/** The agent or workflow that accepted work is for. */
export interface WorkTarget {
  readonly kind: "agent" | "workflow";
  readonly name: string;
}

/**
 * Lets accepted work wait, as for a store that is away, whose agent or workflow this node's files lack while other nodes live: in
 * the middle of a deploy one of them has it. A node that is alone goes on, and says that it is unknown.
 */
export async function checkKnownByNode(
  { kind, name }: WorkTarget,
  { cluster, sources }: { readonly cluster: NonNullable<Engine["cluster"]>; readonly sources: Sources },
): Promise<void> {
  if (isKnown({ kind, name }, sources)) return;
  const nodes = await cluster.nodes();
  if (nodes.length < 2) return;
  throw storeUnavailable({
    store: `The ${kind} "${name}"`,
    reason: "this node's files have none of that name, and those of another node may",
    hint: "In the middle of a deploy nothing is to be done. Two projects over one database need two schemas: engine.schema.",
  });
}

function isKnown({ kind, name }: WorkTarget, sources: Sources): boolean {
  const check = kind === "agent" ? () => sources.checkAgent(name) : () => sources.workflow(name);
  try {
    check();
    return true;
  } catch {
    return false;
  }
}
