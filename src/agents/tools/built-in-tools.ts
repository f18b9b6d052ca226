import { offersBuiltIn } from "../define/profile-settings.ts";
import type { AnyTool, ToolContext, ToolDefinition } from "../define/tool.ts";
import { createCommandTool } from "./command-tool.ts";
import { createReadTools, createSearchTools, createWriteTools } from "./read-tools.ts";
import type { ToolEnvironment } from "./tool-environment.ts";

/**
 * The tools that every agent has. Tools that write files or run commands are included only if the policy allows them: a
 * model does not try a tool that it does not see.
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

interface TaskInput {
  readonly prompt: string;
  readonly agent?: string;
  readonly role?: string;
  readonly cwd?: string;
}

/** The tool call that starts a task. */
export type TaskCall = Pick<ToolContext, "toolCallId" | "turnId">;

/** Starts a task of the running operation, or resumes the one with the same key, and returns its answer. */
export type StartTask = (
  text: string,
  options: Omit<TaskInput, "prompt"> & { readonly key: string; readonly call: TaskCall },
) => Promise<{ readonly text: string }>;

/** The `task` tool: the model delegates a piece of work to a new session. */
export function createTaskTool(startTask: StartTask): ToolDefinition<TaskInput> {
  return {
    name: "task",
    description:
      "Hands a self-contained piece of work to a fresh session that shares the workspace, and gives back its answer. Say all that it needs to know: it does not see this conversation.",
    input,
    // The budget of the task and an abort of this operation limit it.
    timeoutMs: Number.POSITIVE_INFINITY,
    // The same call resumes the same task, whose session has a log.
    idempotent: true,
    execute: async ({ prompt, ...options }, call) =>
      (await startTask(prompt, { ...options, key: call.idempotencyKey, call })).text,
  };
}

const input = {
  type: "object",
  properties: {
    prompt: { type: "string", minLength: 1, description: "What to do, and what to report." },
    agent: {
      type: "string",
      description: "One of the agents listed in the instructions; default: one like you.",
    },
    role: { type: "string", description: "A role to take on." },
    cwd: { type: "string", description: "Working folder inside the workspace." },
  },
  required: ["prompt"],
  additionalProperties: false,
} as const;
