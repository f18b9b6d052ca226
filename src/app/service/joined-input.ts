import type { WaitingInputs } from "../../agents/agent-runtime.ts";
import { type Agent, harnessOf } from "../../agents/harness.ts";
import { askAgain } from "../../agents/log/after-others.ts";
import { isAnswer } from "../../agents/operations/answer.ts";
import { joinedFrom } from "../../agents/operations/join-inputs.ts";
import { runPrompt } from "../../agents/operations/run-prompt.ts";
import type { Engine } from "../../engine/contract.ts";
import { readOperationEnd } from "../../protocol/operation-end.ts";
import type { JoinedResult, PromptReply } from "../../protocol/prompt.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { Input } from "./input.ts";
import { toReply } from "./session-work.ts";
import { joins, operationOf, toPromptRequest } from "./stored-input.ts";

/** Reads a waiting input, if it is to join the operation that runs. */
export async function readJoining(
  engine: Pick<Engine, "getDispatch">,
  id: string,
): ReturnType<WaitingInputs["read"]> {
  const { status, input } = (await engine.getDispatch(id)) ?? {};
  if (status !== "queued" || !joins(input)) return undefined;
  const { message, client_id, images, files } = toPromptRequest(input);
  return { message, client_id, images, files, operation_id: operationOf(id) };
}

/**
 * Ends the input of a dispatch whose message has joined an operation; undefined if it has joined none. If the process of that
 * operation died before it had answered, and nothing resumes the operation, the input is answered now.
 */
export async function performJoined(
  agent: Agent,
  signal: AbortSignal,
  { key, request, operationId: id, resting }: Input,
): Promise<PromptReply | JoinedResult | undefined> {
  const harness = harnessOf(agent);
  await harness.unsaved.write(key);
  const entries = await harness.store.read(key);
  const at = entries.findIndex((entry) => joinedFrom(entry) === id);
  const joined = entries[at]?.operation_id;
  if (joined === undefined) return undefined;
  if (entries.slice(at).some((entry) => entry.operation_id === joined && isEnd(entry))) return { joined };
  const { message, client_id: clientId } = request;
  const resumes = resting !== undefined;
  const reply = await harness
    .liveSession(key.session)
    .operate({ kind: "prompt", message, clientId, id, resumes, signal }, (operation) =>
      runPrompt(harness, operation, { text: askAgain(message), source: "resume", options: {} }),
    );
  return toReply(reply);
}

/** Whether an operation has answered, or has ended otherwise, with an entry. */
function isEnd(entry: SessionEntry): boolean {
  return readOperationEnd(entry) !== undefined || (entry.type === "message" && isAnswer(entry.message));
}
