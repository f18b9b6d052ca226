import type { AdmitRequest, RunRequest } from "../../contract.ts";

/** Who has a share of the slots and of the line. The word before the first slash says what is meant. */
export type OwnerKind = "principal" | "instance" | "workflow";

/** Whose an input is: its sender's; where nobody is asked who they are, its instance's. */
export function ownerOfInput({
  principal,
  agent,
  instance_id,
}: Pick<AdmitRequest, "principal" | "agent" | "instance_id">): string {
  return principal === undefined ? `instance/${agent}/${instance_id}` : toOwner(principal);
}

/** Whose a run is: its sender's; where nobody is asked who they are, its workflow's. */
export function ownerOfRun({ principal, workflow }: Pick<RunRequest, "principal" | "workflow">): string {
  return principal === undefined ? `workflow/${workflow}` : toOwner(principal);
}

/** The principal that an owner is; none for an instance or a workflow. */
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
