import type { A2aArtifact, A2aSentMessage, A2aSentPart, A2aStatus, A2aTask } from "../../protocol/a2a.ts";
import type { ApprovalRequest } from "../../protocol/approval.ts";
import type { DispatchRecord } from "../../protocol/dispatch.ts";

/** A waiting call of a task. */
export interface WaitingCall extends ApprovalRequest {
  /** Whether the sender may answer it; otherwise a person does, in kit's inbox. */
  readonly isSenders: boolean;
}

interface TaskParts {
  /** The user's message, and its id. */
  readonly message: string;
  readonly messageId?: string | undefined;
  readonly waiting?: readonly WaitingCall[];
  /** The agent's answer so far. */
  readonly text?: string;
  readonly historyLength?: number | null | undefined;
  readonly hasArtifacts?: boolean;
}

/** A dispatch as a task of A2A. */
export function toTask(
  record: DispatchRecord,
  { message, messageId, waiting = [], text = "", historyLength, hasArtifacts = true }: TaskParts,
): A2aTask {
  const { dispatch_id: taskId, session: contextId } = record;
  const ids = { taskId, contextId };
  const history: readonly A2aSentMessage[] = [
    { messageId: messageId ?? taskId, role: "ROLE_USER", parts: [textPart(message)], ...ids },
  ];
  return {
    id: taskId,
    contextId,
    status: waitingStatus(waiting, ids) ?? toStatus(record),
    ...(hasArtifacts && { artifacts: artifactsOf(record, text) }),
    ...(historyLength !== 0 && { history }),
  };
}

function toStatus(record: DispatchRecord): A2aStatus {
  const {
    status,
    error,
    dispatch_id: taskId,
    session: contextId,
    accepted_at,
    started_at,
    ended_at,
  } = record;
  const state = {
    queued: started_at === undefined ? "TASK_STATE_SUBMITTED" : "TASK_STATE_WORKING",
    running: "TASK_STATE_WORKING",
    completed: "TASK_STATE_COMPLETED",
    failed: "TASK_STATE_FAILED",
    cancelled: "TASK_STATE_CANCELED",
  } as const;
  return {
    state: state[status],
    timestamp: ended_at ?? started_at ?? accepted_at,
    ...(status === "failed" && {
      message: statusMessage([textPart(error?.message ?? "The agent failed.")], { taskId, contextId }),
    }),
  };
}

interface TaskIds {
  readonly taskId: string;
  readonly contextId: string;
}

/** The arguments of a call in a text, in characters; a data part has all of them. */
const maxArguments = 4_000;

/** The status of a task whose calls wait; undefined if none does. */
export function waitingStatus(calls: readonly WaitingCall[], ids: TaskIds): A2aStatus | undefined {
  const own = calls.filter(({ isSenders }) => isSenders);
  const asked = own.length > 0 ? own : calls;
  const [first] = asked;
  if (first === undefined) return undefined;
  const parts = asked.flatMap((call): readonly A2aSentPart[] => {
    const { approval_id, kind, tool, args, message, schema, isSenders } = call;
    if (!isSenders)
      return [
        textPart(
          `A person decides about a call of ${tool} in kit's inbox. Follow the task, or get it later.`,
        ),
      ];
    const text = JSON.stringify(args) ?? "";
    const start = text.length > maxArguments ? `${text.slice(0, maxArguments)}…` : text;
    const what = kind === "question" ? `${tool} asks: ${message}` : `The agent calls ${tool} with ${start}.`;
    const data = { approval_id, tool, args, kind, message, schema };
    return [
      textPart(`${what} Send a message of this task with ${howToAnswer(call)}.`),
      { data, mediaType: "application/json" },
    ];
  });
  return {
    state: own.length > 0 ? "TASK_STATE_INPUT_REQUIRED" : "TASK_STATE_AUTH_REQUIRED",
    timestamp: first.requested_at,
    message: statusMessage(parts, ids, first.approval_id),
  };
}

/** Whether the answer to a call is a result. */
export function isAnswered({ kind = "approval" }: WaitingCall): boolean {
  return kind !== "approval";
}

/** The data that answers a call. */
export function howToAnswer(call: WaitingCall | undefined): string {
  const approval_id = call?.approval_id ?? "approval_…";
  const yes = call !== undefined && isAnswered(call) ? { result: "…" } : { decision: "approve" };
  const [data, denial] = [yes, { decision: "deny", reason: "…" }].map((answer) =>
    JSON.stringify({ approval_id, ...answer }),
  );
  return `data ${data} or ${denial}`;
}

function statusMessage(
  parts: readonly A2aSentPart[],
  ids: TaskIds,
  messageId = `${ids.taskId}-status`,
): A2aSentMessage {
  return { messageId, role: "ROLE_AGENT", parts, ...ids };
}

function artifactsOf({ status, result }: DispatchRecord, text: string): readonly A2aArtifact[] {
  if (status !== "completed") return text === "" ? [] : [answerOf([textPart(text)])];
  const reply = result as { readonly text: string; readonly result?: unknown };
  return [
    answerOf([
      reply.result === undefined
        ? textPart(reply.text)
        : { data: reply.result, mediaType: "application/json" },
    ]),
  ];
}

/** The one artifact of a task. */
export function answerOf(parts: readonly A2aSentPart[]): A2aArtifact {
  return { artifactId: "answer", name: "answer", parts };
}

export function textPart(text: string): A2aSentPart {
  return { text, mediaType: "text/plain" };
}
