import type { PermissionOption, RequestPermissionOutcome } from "@agentclientprotocol/sdk";
import type { AllowChoices, AllowRule } from "../../protocol/approval.ts";
import { visibleLine } from "./call-view.ts";

/** Returns the answers about a waiting call: yes, yes to all calls of one of kit's rules, no. */
export function toOptions({ choices, problem }: AllowChoices): PermissionOption[] {
  const always = problem === undefined ? choices : [];
  return [
    { optionId: "allow", name: "Allow", kind: "allow_once" },
    ...always.map(({ summary }, index): PermissionOption => {
      return {
        optionId: `always-${index}`,
        name: `Always allow: ${visibleLine(summary)}`,
        kind: "allow_always",
      };
    }),
    { optionId: "deny", name: "Deny", kind: "reject_once" },
  ];
}

/** The answer of an editor. Whatever is not one of the offered yeses is a no. */
export function toVerdict(
  outcome: RequestPermissionOutcome | undefined,
  { choices, problem }: AllowChoices,
): { readonly approved: boolean; readonly rule?: AllowRule } {
  if (outcome?.outcome !== "selected") return { approved: false };
  if (outcome.optionId === "allow") return { approved: true };
  const [, index] = /^always-(\d{1,4})$/.exec(outcome.optionId) ?? [];
  const rule = index === undefined || problem !== undefined ? undefined : choices[Number(index)]?.rule;
  return rule === undefined ? { approved: false } : { approved: true, rule };
}
