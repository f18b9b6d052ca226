import { nameKey } from "../base/names.ts";
import type { ServiceAction } from "./access.ts";

/** kit's own workflows, each with the action that starting it needs. */
export const builtInActions = {
  "kit.spec": "project.run",
  "kit.verify": "project.verify",
} as const satisfies Readonly<Record<`kit.${string}`, ServiceAction>>;

export type BuiltInName = keyof typeof builtInActions;

export function isBuiltInName(name: string): name is BuiltInName {
  return Object.hasOwn(builtInActions, name);
}

/** Whether a name belongs to kit: no file of a project can define a workflow of such a name, also not in another case. */
export function isReservedName(name: string): boolean {
  return nameKey(name).startsWith("kit.");
}

/** The action that `authorize` checks for a sender who starts a run of the workflow. */
export function startActionOf(workflow: string): ServiceAction {
  return isBuiltInName(workflow) ? builtInActions[workflow] : "workflow.run";
}
