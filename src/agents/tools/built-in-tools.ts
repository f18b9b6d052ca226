import type { EventBody } from "../../protocol/event.ts";
import type { Sandbox } from "../../sandboxes/contract.ts";
import type { AgentPolicy } from "../agent-profile.ts";
import type { AnyTool } from "../tool.ts";
import { createCommandTool } from "./command-tool.ts";
import { createReadTools } from "./read-tools.ts";
import { createSearchTools } from "./search-tools.ts";
import { createWriteTools } from "./write-tools.ts";

/** What the built-in tools of one operation work with. */
export interface ToolEnvironment {
  readonly sandbox: () => Promise<Sandbox>;
  readonly policy: AgentPolicy;
  /** Secrets granted to this operation, for its commands. */
  readonly env: Readonly<Record<string, string>>;
  readonly emit: (body: EventBody) => void;
}

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

/** A JSON Schema object whose properties are all texts, but for those given otherwise. */
export function objectSchema(
  properties: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
  required: readonly string[],
): Readonly<Record<string, unknown>> {
  return { type: "object", properties, required, additionalProperties: false };
}

export const pathProperty = {
  type: "string",
  minLength: 1,
  description: "Path in the workspace, such as src/app.ts.",
} as const;
