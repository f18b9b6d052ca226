import { canonical } from "../../base/json-text.ts";
import type { AllowRule } from "../../protocol/approval.ts";
import type { ApprovalRules } from "./agent-profile.ts";
import type { ToolContext, ToolDefinition } from "./tool.ts";

/** The allow rules of a configuration. A rule that is added holds for the next call of every live agent. */
export class AllowRules {
  #rules: readonly AllowRule[];

  constructor(rules: readonly AllowRule[] = []) {
    this.#rules = rules;
  }

  get rules(): readonly AllowRule[] {
    return this.#rules;
  }

  add(rule: AllowRule): void {
    if (!this.has(rule)) this.#rules = [...this.#rules, rule];
  }

  has(rule: AllowRule): boolean {
    return this.#rules.some((one) => canonical(one) === canonical(rule));
  }
}

/** The rules of several definitions together: those of the configuration may be waived by its own allow rules, the others may not. */
interface JoinedRules extends ApprovalRules {
  /** Only rules of the configuration have it. The list grows while agents live. */
  readonly allow?: { readonly rules: readonly AllowRule[] };
  /** The patterns of `tools` that agents' own definitions ask for, where `allow` is set. */
  readonly strict?: readonly string[];
}

/** Combines rules: a call needs approval if one of them says so. The shorter time limit applies. */
export function mergeApprovals(base: JoinedRules, over: JoinedRules): ApprovalRules {
  const tools = [...new Set([...base.tools, ...over.tools])];
  const times = [base.timeoutMs, over.timeoutMs].filter((time) => time !== undefined);
  const merged = { tools, timeoutMs: times.length === 0 ? undefined : Math.min(...times) };
  const allow = base.allow ?? over.allow;
  if (allow === undefined) return merged;
  const joined: JoinedRules = { ...merged, allow, strict: [...strictOf(base), ...strictOf(over)] };
  return joined;
}

function strictOf({ tools, allow, strict = [] }: JoinedRules): readonly string[] {
  return allow === undefined ? tools : strict;
}

/** A call before it is run, with its validated input. */
interface CheckedCall {
  readonly input: unknown;
  readonly context: ToolContext;
}

/**
 * Whether a call needs approval before it runs. `isAllowed` says whether one of the configuration's allow rules fits it. Throws
 * if the tool's own function throws.
 */
export function needsApproval(
  tool: ToolDefinition,
  call: CheckedCall,
  {
    rules,
    isAllowed,
  }: {
    readonly rules: ApprovalRules | undefined;
    readonly isAllowed: (rules: readonly AllowRule[]) => Promise<boolean>;
  },
): boolean | Promise<boolean> {
  const demand = rulesAsk(tool, call.input, rules);
  if (demand === "no") return toolAsks(tool, call);
  const allowed = (rules as JoinedRules).allow?.rules ?? [];
  if (demand === "strictly" || allowed.length === 0) return true;
  return isAllowed(allowed).then((allows) => (allows ? toolAsks(tool, call) : true));
}

/**
 * Whether each call of the tool needs approval, unless an allow rule waives it. A tool's own function may answer otherwise the next
 * time, so it does not count.
 */
export function alwaysAsks(tool: ToolDefinition, input: unknown, rules: ApprovalRules | undefined): boolean {
  return tool.needsApproval === true || rulesAsk(tool, input, rules) !== "no";
}

/** Why no rule of the configuration can waive the approval of a call; undefined where one can. */
export async function unwaivable(
  tool: ToolDefinition,
  call: CheckedCall,
  rules: ApprovalRules | undefined,
): Promise<string | undefined> {
  const demand = rulesAsk(tool, call.input, rules);
  if (demand === "strictly")
    return "The agent's own definition asks for this approval: no rule can waive it.";
  if (demand === "no" || (await toolAsks(tool, call)))
    return "The tool itself asks for this approval: no rule can waive it.";
  return undefined;
}

/** Whether rules ask for the approval of a call, and whether an allow rule may waive that. */
function rulesAsk(
  tool: ToolDefinition,
  input: unknown,
  rules: JoinedRules | undefined,
): "no" | "strictly" | "waivably" {
  if (rules === undefined) return "no";
  const alias = tool.standsFor?.(input);
  const matches = (pattern: string): boolean =>
    matchesName(pattern, tool.name) || (alias !== undefined && matchesName(pattern, alias));
  if (!rules.tools.some(matches)) return "no";
  return strictOf(rules).some(matches) ? "strictly" : "waivably";
}

function toolAsks(tool: ToolDefinition, call: CheckedCall): boolean | Promise<boolean> {
  const toolRule = tool.needsApproval;
  return typeof toolRule === "function" ? toolRule(call.input, call.context) : toolRule === true;
}

/** Greedy from left to right, without backtracking: linear in the name for each part of the pattern. */
function matchesName(pattern: string, name: string): boolean {
  const [head = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return pattern === name;
  if (!name.startsWith(head)) return false;
  const tail = rest.pop() ?? "";
  let at = head.length;
  for (const part of rest) {
    const position = name.indexOf(part, at);
    if (position === -1) return false;
    at = position + part.length;
  }
  return name.length - tail.length >= at && name.endsWith(tail);
}
