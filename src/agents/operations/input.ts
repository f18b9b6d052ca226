import type { AgentBackend } from "../../backends/contract.ts";
import { isoTime } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import type { AssistantMessage, FilePart, ImagePart, Message, UserMessage } from "../../protocol/message.ts";
import { textOf } from "../../protocol/message-text.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { MaybePromise } from "../../stores/contract.ts";
import type { Harness, Operation } from "../agent-runtime.ts";
import { askAgain } from "../log/operation-log.ts";
import type { PastOperation } from "../log/resume.ts";
import { runTools, type TurnLoop } from "../turn/turn-loop.ts";

/** The progress of an interrupted prompt. */
export interface PromptProgress {
  /** Answers that did not match the result schema, oldest first. */
  readonly refused: readonly string[];
  /** Whether the provider refused to enforce the result schema. */
  readonly nativeRefused: boolean;
  /** The newest message, if it is an answer without tool calls. */
  readonly answer: AssistantMessage | undefined;
  /** Ended runs of the backend. */
  readonly runs: number;
}

export const noProgressYet: PromptProgress = {
  refused: [],
  nativeRefused: false,
  answer: undefined,
  runs: 0,
};

/** The past operation, if the log has its prompt. */
export function pastPrompt({ past }: Operation): PastOperation | undefined {
  return past?.messages[0]?.role === "user" ? past : undefined;
}

/** Reads the progress of a prompt from its log. */
export async function progressOf(
  past: PastOperation,
  backend: AgentBackend | undefined,
): Promise<PromptProgress> {
  const { messages } = past;
  const refused: string[] = [];
  let nativeRefused = false;
  let before: Message | undefined;
  for (const message of messages) {
    if (message.role === "user" && message.source === "repair") {
      // Without an answer to repair, the request stated the schema in words.
      const answer = answerIn(before);
      if (answer === undefined) nativeRefused = true;
      else refused.push(textOf(answer));
    }
    before = message;
  }
  const asked = refused.length + (nativeRefused ? 1 : 0);
  const newest = answerIn(before);
  if (backend?.capabilities?.state !== true)
    return { refused, nativeRefused, answer: newest, runs: asked + (newest === undefined ? 0 : 1) };
  // An answer may be one step of such a backend, which logs its end itself.
  const { endedRuns } = await import("../backend/backend-request.ts");
  const runs = Math.max(asked, endedRuns(past));
  return { refused, nativeRefused, answer: runs > asked ? newest : undefined, runs };
}

/**
 * Prepares the history of an interrupted prompt for the next turn: runs or closes open calls, and asks the model to
 * finish an answer that broke off. If other operations have overtaken the prompt, its input keeps its place and a new
 * message asks for the answer.
 */
export async function recoverHistory(
  harness: Pick<Harness, "runtime">,
  operation: Operation,
  loop: TurnLoop,
): Promise<void> {
  const { past, state } = operation;
  if (past?.overtaken === true) {
    const [input] = past.messages;
    const isShown = state.positions.includes(past.first) || input === undefined;
    await appendUserMessage(harness, operation, {
      text: askAgain(isShown ? undefined : textOf(input)),
      source: "resume",
    });
    return;
  }
  const last = operation.state.messages.at(-1);
  if (last?.role !== "assistant" || answerIn(last) !== undefined) return;
  const calls = last.content.filter((part) => part.type === "tool_call");
  if (calls.length === 0) {
    await appendUserMessage(harness, operation, {
      text: "Your answer broke off. Go on from there.",
      source: "resume",
    });
    return;
  }
  const { suspension } = operation;
  const turnId = suspension?.turnId ?? createId("turn");
  await runTools(loop, calls, { turnId, interrupted: true, suspension });
  loop.emit({ type: "turn_end", tool_calls: calls.length }, turnId);
  loop.signal.throwIfAborted();
}

/** The message, if it is a finished answer without tool calls. */
function answerIn(message: Message | undefined): AssistantMessage | undefined {
  if (message?.role !== "assistant") return undefined;
  const { finish_reason, content } = message;
  if (finish_reason === "aborted" || finish_reason === "error") return undefined;
  return content.some((part) => part.type === "tool_call") ? undefined : message;
}

interface NewUserMessage {
  readonly text: string;
  /** Images and documents after the text. */
  readonly files?: readonly (FilePart | ImagePart)[];
  readonly source?: UserMessage["source"];
  readonly shows?: UserMessage["shows"];
  /** Entries before the message. */
  readonly before?: readonly SessionEntry[];
  /** Whether the message is the operation's input, which the log accepts once. */
  readonly isInput?: boolean;
}

/** Appends a message of the user, or of kit itself, to the history. */
export function appendUserMessage(
  harness: Pick<Harness, "runtime">,
  operation: Operation,
  { text, files = [], source, shows, before = [], isInput }: NewUserMessage,
): MaybePromise<void> {
  const message: UserMessage = {
    role: "user",
    content: [{ type: "text", text: operation.mask?.(text) ?? text }, ...files],
    timestamp: isoTime(harness.runtime.clock.now()),
    ...(source === undefined ? {} : { source }),
    ...(shows === undefined ? {} : { shows }),
  };
  const entry = { version: 1, type: "message", message, operation_id: operation.id } as const;
  return operation.log.append([...before, entry], isInput);
}
