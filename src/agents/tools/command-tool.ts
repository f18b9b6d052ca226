import type { ExecResult } from "../../sandboxes/contract.ts";
import type { AllowedCommand } from "../define/agent-profile.ts";
import type { AnyTool, KitCommand, ToolDefinition, ToolOutput } from "../define/tool.ts";
import { guardOf } from "../policy/protected-paths.ts";
import type { CommandRun } from "./run-command.ts";
import { objectSchema, pathProperty, type ToolEnvironment } from "./tool-environment.ts";

interface CommandInput {
  readonly command: string;
  readonly cwd?: string;
  readonly timeout_seconds?: number;
}

/** Loads the command policy when the first command runs. */
async function runCommand(run: CommandRun): Promise<ExecResult> {
  return await (await import("./run-command.ts")).runCommand(run);
}

/** The `bash` tool: runs a command under the agent's policy. */
export function createCommandTool(environment: ToolEnvironment): ToolDefinition<CommandInput> {
  const { policy } = environment;
  return {
    name: "bash",
    description: describe((policy.allowedCommands ?? []).map(written), policy.allowCompoundCommands === true),
    input: objectSchema(
      {
        command: { type: "string", minLength: 1 },
        cwd: { ...pathProperty, description: "Folder to run in; default: the working folder." },
        timeout_seconds: { type: "integer", minimum: 1, maximum: 3600, description: "Default 120." },
      },
      ["command"],
    ),
    exclusive: true,
    timeoutMs: 3_600_000,
    async execute(input, context) {
      const { signal, toolCallId } = context;
      const sandbox = await environment.sandbox();
      const result = await runCommand({
        command: input.command,
        sandbox,
        readOnlyPaths: environment.sources?.kept(sandbox.hostRoot, policy.allowProtectedPaths ?? []),
        guard: guardOf(
          { hostRoot: sandbox.hostRoot, projectRoot: environment.projectRoot },
          policy.allowProtectedPaths ?? [],
        ),
        policy,
        projectRoot: environment.projectRoot,
        isLoaded: environment.sources?.isLoaded.bind(environment.sources),
        env: environment.envOf(context),
        signal,
        emit: environment.emit,
        begin: () => environment.sources?.begin(environment.writer("bash")) ?? nothing,
        toolCallId,
        timeoutMs: input.timeout_seconds && input.timeout_seconds * 1000,
        cwd: input.cwd,
      });
      return toOutput(result);
    },
  };
}

/** A command's result for the model, marked as an error if the command failed. */
function toOutput(result: ExecResult): ToolOutput {
  const parts = [result.stdout.trimEnd(), result.stderr.trimEnd()].filter((part) => part !== "");
  if (result.timed_out) parts.push("The command was stopped at its time limit.");
  else if (result.exit_code !== 0)
    parts.push(`Exit code ${result.exit_code ?? "none: the command was killed"}.`);
  const content = parts.join("\n");
  return { content: content === "" ? "(no output)" : content, isError: result.exit_code !== 0 };
}

function nothing(): void {}

function written(entry: AllowedCommand): string {
  return typeof entry === "string" ? entry : entry.command;
}

function describe(allowed: readonly string[], compound: boolean): string {
  const which = allowed.length === 0 ? "" : ` Allowed: ${allowed.join(", ")}.`;
  const form = compound
    ? " Commands may be joined with &&, ||, ; and |."
    : " One simple command without operators, redirects, variables or substitutions; quote with single quotes.";
  return `Runs a command in the workspace.${which}${form}`;
}

const noArguments = { type: "object", properties: {}, additionalProperties: false } as const;

/**
 * Commands as tools. A shell command runs as its author wrote it and needs no `allowShell`: the model
 * chooses when it runs, never its text. It can write and connect as the agent can, unless it declares other rights.
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
    timeoutMs: command.timeoutMs,
    needsApproval: command.needsApproval,
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
        toolCallId: context.toolCallId,
        timeoutMs: command.timeoutMs,
      });
      return toOutput(result);
    },
  };
}
