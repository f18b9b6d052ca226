import type { Harness, LiveSession } from "../agent-runtime.ts";
import type { ToolDefinition } from "../tool.ts";

interface TaskInput {
  readonly prompt: string;
  readonly agent?: string;
  readonly role?: string;
  readonly cwd?: string;
}

/** The `task` tool: lets the model hand a piece of work to a session of its own. */
export function createTaskTool(harness: Harness, live: LiveSession): ToolDefinition<TaskInput> {
  return {
    name: "task",
    description:
      "Hands a self-contained piece of work to a fresh session that shares the workspace, and gives back its answer. Say all that it needs to know: it does not see this conversation.",
    input,
    // A task is as long as its work is; its own budget and the abort of this operation bound it.
    timeoutMs: 2 ** 31 - 1,
    async execute({ prompt, ...options }) {
      const operation = live.current;
      // A tool runs within an operation of its session, so there is one.
      if (operation === undefined) throw new Error("The operation has ended.");
      const result = await harness.startTask(operation, { text: prompt, options });
      return result.text;
    },
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
