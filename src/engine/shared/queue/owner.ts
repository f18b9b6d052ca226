import type { AdmitRequest, RunRequest } from "../../contract.ts";

/** The kinds of owners, which have shares of the slots and of the queue. An owner's name begins with its kind and a slash. */
export type OwnerKind = "principal" | "instance" | "workflow";

/** The owner of an input: its sender, or its instance when requests are not authenticated. */
export function ownerOfInput({
  principal,
  agent,
  instance_id,
}: Pick<AdmitRequest, "principal" | "agent" | "instance_id">): string {
  return principal === undefined ? `instance/${agent}/${instance_id}` : toOwner(principal);
}

/** The owner of a run: its starter, or its workflow when requests are not authenticated. */
export function ownerOfRun({ principal, workflow }: Pick<RunRequest, "principal" | "workflow">): string {
  return principal === undefined ? `workflow/${workflow}` : toOwner(principal);
}

/** The principal of an owner; none for an instance or a workflow. */
export function principalOf(owner: string): { readonly principal?: string } {
  return owner.startsWith(principalPrefix) ? { principal: owner.slice(principalPrefix.length) } : {};
}

export function kindOf(owner: string): OwnerKind {
  return owner.slice(0, owner.indexOf("/")) as OwnerKind;
}

const principalPrefix = "principal/";

function toOwner(principal: string): string {
  return `${principalPrefix}${principal}`;
}
