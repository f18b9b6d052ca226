import { KitError } from "../../base/kit-error.ts";
import type { Harness, LiveSession, Operation } from "../agent-runtime.ts";
import type { AgentProfile } from "../define/agent-profile.ts";
import { mergeProfiles } from "../define/create-agent.ts";
import { taskIdOf } from "../events.ts";
import { folderAt } from "../project-context.ts";
import { maskedBeforeGrant } from "../secrets.ts";
import type { TaskCall } from "../tools/built-in-tools.ts";
import type { PromptResult, TaskOptions } from "./options.ts";
import type { PromptHost } from "./prepare.ts";
import { runPrompt } from "./run-prompt.ts";

/** The parts of an agent that a task uses. */
type TaskHost = PromptHost & Pick<Harness, "liveSession" | "drop">;

const defaultMaxTaskDepth = 8;

/**
 * Starts a session below that of `operation` and prompts it: own history, shared sandbox. It is
 * aborted with its parent, and deleted with it. The key names session and operation, so that
 * the same task, requested again after a crash, resumes.
 */
export async function startTask<Result>(
  harness: TaskHost,
  operation: Operation,
  task: {
    readonly text: string;
    readonly key: string;
    /** The call, if the model requested the task. */
    readonly call?: TaskCall;
    readonly options: TaskOptions<Result>;
  },
): Promise<PromptResult<Result>> {
  const parent = operation.live;
  const { options } = task;
  const maxDepth = parent.profile.maxTaskDepth ?? defaultMaxTaskDepth;
  if (parent.depth >= maxDepth) {
    throw new KitError({
      code: "invalid_request",
      message: `Tasks may start tasks ${maxDepth} levels deep, and this is the last.`,
    });
  }
  const taskId = await taskIdOf(task.key);
  const child = harness.liveSession(`${parent.key.session.slice(0, 80)}.${taskId}`, {
    parent: parent.key,
    profile: profileFor(parent.profile, options.agent),
    sandbox: inFolder(parent, options.cwd),
    depth: parent.depth + 1,
  });
  const started = harness.runtime.clock.now();
  const role = typeof options.role === "object" ? options.role.name : options.role;
  const scope = { task_id: taskId, parent_operation_id: operation.id };
  const { call } = task;
  const message = maskedBeforeGrant(task.text, options.secrets ?? [], {
    env: harness.runtime.env,
    mask: operation.mask,
  });
  operation.emit(
    {
      type: "task_start",
      task_id: taskId,
      // Readers of an event may ask whether a name is there.
      ...(call === undefined ? {} : { tool_call_id: call.toolCallId }),
      prompt: message,
      role,
      task_agent: options.agent,
      cwd: options.cwd,
    },
    call?.turnId,
  );
  let failed = true;
  const running = child.operate(
    {
      kind: "prompt",
      message,
      id: `op_${taskId}`,
      resumes: true,
      signal: operation.signal,
      scope,
      parent: operation,
    },
    (childOperation) => runPrompt(harness, childOperation, { text: task.text, options }),
  );
  operation.tasks = [...operation.tasks, running];
  try {
    const result = await running;
    failed = false;
    return result;
  } finally {
    operation.tasks = operation.tasks.filter((each) => each !== running);
    const duration_ms = harness.runtime.clock.now() - started;
    operation.emit({ type: "task_end", task_id: taskId, is_error: failed, duration_ms }, call?.turnId);
    harness.drop(child);
  }
}

/** The parent's sandbox, with another working folder. */
function inFolder(
  parent: LiveSession,
  cwd: string | undefined,
): Pick<LiveSession, "sandbox" | "workplace" | "located"> {
  if (cwd === undefined) return parent;
  return {
    sandbox: async () => (await parent.sandbox()).at(cwd),
    located() {
      const workplace = parent.located();
      return workplace && { ...workplace, cwd: folderAt(workplace, cwd) };
    },
    async workplace(signal) {
      const workplace = await parent.workplace(signal);
      return { ...workplace, cwd: folderAt(workplace, cwd) };
    },
  };
}

function profileFor(parent: AgentProfile, name: string | undefined): AgentProfile {
  if (name === undefined) return parent;
  const subagents = parent.subagents ?? [];
  const subagent = subagents.find((agent) => agent.name === name);
  if (subagent !== undefined) {
    // A subagent inherits its parent's settings, but not its rights, tools and instructions: rights are granted,
    // not inherited.
    const {
      allowWrite,
      allowShell,
      allowedCommands,
      allowCompoundCommands,
      allowProtectedPaths,
      allowNetwork,
      tools,
      commands,
      python,
      instructions,
      ...rest
    } = parent;
    return mergeProfiles({ ...rest, subagents: [] }, subagent);
  }
  const names = subagents.flatMap((agent) => (agent.name === undefined ? [] : [agent.name])).join(", ");
  throw new KitError({
    code: "invalid_request",
    message: `There is no subagent named "${name}".`,
    hint: names === "" ? "Add it to the agent's `subagents`." : `The subagents are: ${names}.`,
  });
}
