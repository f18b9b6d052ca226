import type { KitCommand } from "./command.ts";
import type { AnyTool, ToolDefinition } from "./tool.ts";
import { toOutput } from "./tools/command-tool.ts";
import { runCommand } from "./tools/run-command.ts";
import type { ToolEnvironment } from "./tools/tool-environment.ts";

const noArguments = { type: "object", properties: {}, additionalProperties: false } as const;

/**
 * Commands as tools. A shell command runs as its author wrote it and needs no `allowShell`: the model
 * chooses when it runs, never what it says. It may write and reach what the agent may, and what it says itself.
 */
export function commandTools(
  commands: readonly KitCommand[],
  environment: ToolEnvironment,
): readonly AnyTool[] {
  return commands.map((command) => toTool(command, environment));
}

function toTool(command: KitCommand, environment: ToolEnvironment): AnyTool {
  const { action } = command;
  const base = {
    name: command.name,
    ...(command.timeoutMs === undefined ? {} : { timeoutMs: command.timeoutMs }),
    ...(command.needsApproval === undefined ? {} : { needsApproval: command.needsApproval }),
  };
  if (typeof action === "function") {
    const tool: ToolDefinition = {
      ...base,
      description: command.description ?? `Runs the command "${command.name}".`,
      input: command.input ?? noArguments,
      execute: (input, context) => action(input, context),
    };
    return tool;
  }
  return {
    ...base,
    description: command.description ?? `Runs \`${action}\` in the workspace.`,
    input: noArguments,
    exclusive: true,
    async execute(_input: never, context) {
      const result = await runCommand({
        command: action,
        sandbox: await environment.sandbox(),
        policy: {
          allowShell: true,
          allowCompoundCommands: true,
          allowWrite: command.allowWrite ?? environment.policy.allowWrite === true,
          allowNetwork: command.allowNetwork ?? environment.policy.allowNetwork ?? [],
        },
        env: environment.envOf(context),
        signal: context.signal,
        emit: environment.emit,
        toolCallId: context.tool_call_id,
        ...(command.timeoutMs === undefined ? {} : { timeoutMs: command.timeoutMs }),
      });
      return toOutput(result);
    },
  };
}
