import type { ApprovalRules } from "./agent-profile.ts";
import type { ToolContext, ToolDefinition } from "./tool.ts";

/** Combines rules: each adds calls that need approval. The shorter time limit wins. */
export function mergeApprovals(base: ApprovalRules, over: ApprovalRules): ApprovalRules {
  const tools = [...new Set([...base.tools, ...over.tools])];
  const times = [base.timeoutMs, over.timeoutMs].filter((time) => time !== undefined);
  return { tools, timeoutMs: times.length === 0 ? undefined : Math.min(...times) };
}

/** Whether a call needs approval before it runs. Throws if the tool's own function throws. */
export function needsApproval(
  tool: ToolDefinition,
  call: { readonly input: unknown; readonly context: ToolContext },
  rules: ApprovalRules | undefined,
): boolean | Promise<boolean> {
  if (rules !== undefined) {
    const other = tool.standsFor?.(call.input);
    const matches = (pattern: string): boolean =>
      matchesName(pattern, tool.name) || (other !== undefined && matchesName(pattern, other));
    if (rules.tools.some(matches)) return true;
  }
  const own = tool.needsApproval;
  return typeof own === "function" ? own(call.input, call.context) : own === true;
}

/** Greedy from left to right, without backtracking: linear in the name for each part of the pattern. */
function matchesName(pattern: string, name: string): boolean {
  const [head = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return pattern === name;
  if (!name.startsWith(head)) return false;
  const tail = rest.pop() ?? "";
  let at = head.length;
  for (const part of rest) {
    const found = name.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return name.length - tail.length >= at && name.endsWith(tail);
}
