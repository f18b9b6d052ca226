import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { JsonSchema, ToolContext, ToolReturn } from "./tool.ts";

/** The action of a command: a line that runs in the sandbox, or a function. */
export type CommandAction =
  | string
  | ((args: unknown, context: ToolContext) => ToolReturn | Promise<ToolReturn>);

/** A named action that an agent's model can run. */
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
  /** Calls wait for approval: all of them, or those for which the function returns true. */
  readonly needsApproval?: boolean | ((args: unknown, context: ToolContext) => boolean | Promise<boolean>);
}

/**
 * Defines a command. A shell command needs no `allowShell`: the model chooses when it runs, not its text.
 *
 * @example
 * ```ts
 * import { createAgent, defineCommand } from "kit";
 *
 * const test = defineCommand("test", "npm test", { description: "Runs the unit tests." });
 * export default createAgent({ commands: [test] });
 * ```
 */
export function defineCommand(
  name: string,
  action: CommandAction,
  options: Omit<KitCommand, "name" | "action"> = {},
): KitCommand {
  return { name, action, ...options };
}
