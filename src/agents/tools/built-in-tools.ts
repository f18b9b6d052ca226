import { offersBuiltIn } from "../define/model-settings.ts";
import type { AnyTool } from "../define/tool.ts";
import { createCommandTool } from "./command-tool.ts";
import { createReadTools, createSearchTools } from "./read-tools.ts";
import type { ToolEnvironment } from "./tool-environment.ts";
import { createWriteTools } from "./write-tools.ts";

/**
 * The tools every agent has. Those that write or run commands are offered only where the policy allows
 * it: a model does not try what it does not see.
 */
export function createBuiltInTools(environment: ToolEnvironment): readonly AnyTool[] {
  const { policy } = environment;
  const all = [
    ...createReadTools(environment),
    ...createSearchTools(environment),
    ...(policy.allowWrite === true ? createWriteTools(environment) : []),
    ...(policy.allowShell === true ? [createCommandTool(environment)] : []),
  ];
  return all.filter(({ name }) => offersBuiltIn(policy.builtInTools, name));
}
