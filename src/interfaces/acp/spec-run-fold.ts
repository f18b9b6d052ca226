import type { PlanEntry, SessionUpdate, ToolCallContent } from "@agentclientprotocol/sdk";
import type { KitEvent } from "../../protocol/event.ts";
import {
  type SpecRunResult,
  type SpecTaskProgress,
  type SpecTaskState,
  specTaskOf,
} from "../../protocol/spec-run.ts";
import { describeCall, textContent, visibleLine, visibleText } from "./call-view.ts";
import { readPatch } from "./patch.ts";

/** A task as the plan of the run has it. */
export type PlannedTask = Pick<SpecTaskProgress, "task" | "title">;

/** The protocol has no state for a task that was given up: it is still open in the spec. */
const statuses: Readonly<Partial<Record<SpecTaskState, PlanEntry["status"]>>> = {
  working: "in_progress",
  judging: "in_progress",
  waiting: "in_progress",
  closed: "completed",
};

/**
 * Folds the events of a spec run into updates of the Agent Client Protocol: a plan of its tasks, messages about their verdicts, and the
 * calls of their agents, whose texts stay in their own sessions.
 */
export class SpecRunFold {
  readonly #tasks = new Map<string, PlannedTask & { readonly state: SpecTaskState }>();
  /** The calls that run, by the id that the editor has. */
  readonly #calls = new Set<string>();
  readonly #lastKey = new Map<string, string>();

  /** Returns the plan of a run that has begun. */
  plan(tasks: readonly PlannedTask[]): readonly SessionUpdate[] {
    const begun = [...this.#tasks.values()];
    this.#tasks.clear();
    for (const task of tasks) this.#tasks.set(task.task, { ...task, state: "open" });
    for (const task of begun) this.#tasks.set(task.task, task);
    return [this.#toPlan()];
  }

  push(event: KitEvent): readonly SessionUpdate[] {
    if (event.type === "tool_start" || event.type === "tool_end" || event.type === "approval_request")
      return this.#onCall(event);
    const task = specTaskOf(event);
    if (task === undefined) return [];
    const key = `${task.state} ${task.attempt} ${task.verdict?.tree ?? ""} ${task.verdict?.end ?? ""}`;
    if (this.#lastKey.get(task.task) === key) return [];
    this.#lastKey.set(task.task, key);
    this.#tasks.set(task.task, task);
    const text = messageOf(task);
    return [this.#toPlan(), ...(text === undefined ? [] : [message(text)])];
  }

  /** Returns the result as a message. */
  end({ branch, base, head, tasks, cost }: SpecRunResult): readonly SessionUpdate[] {
    const closed = tasks.filter(({ state }) => state === "closed").length;
    const what = tasks.length === 0 ? "No task is open." : `${closed} of ${tasks.length} tasks closed.`;
    const money = cost === null || cost === 0 ? "" : ` Cost: $${cost.toFixed(2)}.`;
    const commits =
      head === base
        ? ""
        : ` The commits are on ${code(branch)}, your files are as they were: ${code(`git merge ${branch}`)}`;
    return [...this.endOpen(), message(`${what}${money}${commits}`)];
  }

  /** Ends the calls that a stop has left open. */
  endOpen(): readonly SessionUpdate[] {
    const ids = [...this.#calls];
    this.#calls.clear();
    return ids.map((toolCallId) => ({ sessionUpdate: "tool_call_update", toolCallId, status: "failed" }));
  }

  #toPlan(): SessionUpdate {
    const entries = [...this.#tasks.values()].map(({ task, title, state }): PlanEntry => {
      const isGivenUp = state === "refused" || state === "denied" || state === "skipped";
      return {
        content: visibleLine(`${task} ${title}${isGivenUp ? ` (${state})` : ""}`),
        status: statuses[state] ?? "pending",
        priority: "medium",
      };
    });
    return { sessionUpdate: "plan", entries };
  }

  #onCall(
    event: Extract<KitEvent, { type: "tool_start" | "tool_end" | "approval_request" }>,
  ): readonly SessionUpdate[] {
    const toolCallId = callIdOf(event);
    if (event.type === "tool_start") {
      this.#calls.add(toolCallId);
      return [{ sessionUpdate: "tool_call", toolCallId, status: "in_progress", ...describeTaskCall(event) }];
    }
    if (!this.#calls.has(toolCallId)) return [];
    if (event.type === "approval_request")
      return [{ sessionUpdate: "tool_call_update", toolCallId, status: "pending" }];
    this.#calls.delete(toolCallId);
    const status = event.is_error ? "failed" : "completed";
    const content = [textContent(event.result)];
    return [{ sessionUpdate: "tool_call_update", toolCallId, status, content }];
  }
}

/** The id by which the editor knows a call of a task's agent: those of several tasks can be the same. */
export function callIdOf(call: { readonly operation_id: string; readonly tool_call_id: string }): string {
  return `${call.operation_id} ${call.tool_call_id}`;
}

/** The fields of a call of a task's agent. Its files are in a work tree, so no file of the editor is named. */
export function describeTaskCall(call: {
  readonly tool: string;
  readonly args?: unknown;
  readonly session?: string | undefined;
}) {
  const { title, kind, rawInput } = describeCall(call, "");
  return { title: visibleLine(`${taskOfCall(call)} ${title}`), kind, rawInput };
}

/** The number of the task whose agent makes a call: its session has it after its purpose. */
export function taskOfCall({ session = "" }: { readonly session?: string | undefined }): string {
  return session.split(" ").slice(1).join(" ");
}

/** An escape looks as if it were in the file, so a change from one to its character would show no difference. */
const escapesNote =
  "The changes have control characters, line separators or marks that reorder text. They are written as escapes here, such as \\u2028.";

/** The content of the question whether a task is done: why kit asks, and each changed file. */
export function contentOfTask(task: SpecTaskProgress): ToolCallContent[] {
  const reasons = reasonsOf(task);
  return [...(reasons === "" ? [] : [textContent(reasons)]), ...toDiffs(task.diff ?? "", task.work_tree)];
}

/** The parts of a diff of Git as diffs of the editor, and what is none, such as a binary file, as text. */
function toDiffs(diff: string, folder = ""): ToolCallContent[] {
  const escapes = visibleText(diff) === diff ? [] : [textContent(escapesNote)];
  const parts = readPatch(diff).map((part): ToolCallContent => {
    if (typeof part === "string") return textContent(visibleText(part));
    const { path, isNewFile, oldText, newText } = part;
    return {
      type: "diff",
      path: `${folder}/${visibleText(path)}`,
      oldText: isNewFile ? null : visibleText(oldText),
      newText: visibleText(newText),
    };
  });
  return [...escapes, ...parts];
}

function messageOf(task: SpecTaskProgress): string | undefined {
  const { state, attempt, verdict, commit, reason, work_tree } = task;
  const name = `**${visibleLine(`${task.task} ${task.title}`)}**`;
  switch (state) {
    case "closed":
      return `${name}: closed${commit === undefined ? "" : ` (${commit.slice(0, 10)})`}.`;
    case "waiting":
      return `${name} waits for you.`;
    case "refused":
    case "denied":
    case "skipped": {
      const files = work_tree === undefined ? "" : `\n\nIts files are in ${code(work_tree)}`;
      return `${name}: ${state}. ${(reason ?? "").split("\n").map(visibleLine).join("\n")}${files}`;
    }
    case "working":
      return verdict === undefined || attempt === 0 || verdict.end === "closed"
        ? undefined
        : `${name}: attempt ${attempt} was refused.\n\n${reasonsOf(task)}`;
    default:
      return undefined;
  }
}

function reasonsOf({ verdict }: SpecTaskProgress): string {
  return (verdict?.reasons ?? [])
    .map(({ check, message: words, path, line }) => {
      const at = path === undefined ? "" : ` (${path}${line === undefined ? "" : `:${line}`})`;
      return `- ${check}: ${visibleLine(`${words}${at}`)}`;
    })
    .join("\n");
}

function code(text: string): string {
  return `\`${visibleLine(text).replaceAll("`", "'")}\``;
}

function message(text: string): SessionUpdate {
  return { sessionUpdate: "agent_message_chunk", content: { type: "text", text: `${text}\n\n` } };
}
