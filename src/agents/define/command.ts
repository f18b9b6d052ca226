import type { StandardSchemaV1 } from "../../base/standard-schema.ts";
import type { JsonSchema, ToolContext, ToolOutput } from "./tool.ts";

/** What a command does: a line that runs in the sandbox, or a function. */
export type CommandAction =
  | string
  | ((args: unknown, context: ToolContext) => ToolOutput | Promise<ToolOutput>);

/** A named action that an agent's model can run, and nothing else beside it. */
export interface KitCommand {
  readonly name: string;
  readonly action: CommandAction;
  readonly description?: string;
  /** Arguments of a function command; a shell command takes none. */
  readonly input?: StandardSchemaV1 | JsonSchema;
  readonly timeoutMs?: number;
  /** Whether a shell command may change files of the workspace; default: what the agent may. */
  readonly allowWrite?: boolean;
  /** Hosts that a shell command may reach; default: those of the agent. */
  readonly allowNetwork?: readonly string[];
  /** Calls wait until somebody approves them: all, or those for which the function says so. */
  readonly needsApproval?: boolean | ((args: unknown, context: ToolContext) => boolean | Promise<boolean>);
}

/** Defines a command: `defineCommand("test", "npm test")`. A shell command needs no `allowShell`. */
export function defineCommand(
  name: string,
  action: CommandAction,
  options: Omit<KitCommand, "name" | "action"> = {},
): KitCommand {
  return { name, action, ...options };
}
