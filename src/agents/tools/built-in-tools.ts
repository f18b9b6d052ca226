import type { AnyTool } from "../define/tool.ts";
import { createCommandTool } from "./command-tool.ts";
import { createReadTools, createSearchTools } from "./read-tools.ts";
import type { ToolEnvironment } from "./tool-environment.ts";
import { createWriteTools } from "./write-tools.ts";

/** Names that a tool of the user's own cannot take. */
export const builtInToolNames: ReadonlySet<string> = new Set([
  "read",
  "write",
  "edit",
  "stat",
  "exists",
  "mkdir",
  "rm",
  "bash",
  "grep",
  "glob",
  "task",
]);

/**
 * The tools every agent has. Those that write or run commands are offered only where the policy allows
 * it: a model does not try what it does not see.
 */
export function createBuiltInTools(environment: ToolEnvironment): readonly AnyTool[] {
  const { policy } = environment;
  return [
    ...createReadTools(environment),
    ...createSearchTools(environment),
    ...(policy.allowWrite === true ? createWriteTools(environment) : []),
    ...(policy.allowShell === true ? [createCommandTool(environment)] : []),
  ];
}
