import type { AgentBackend } from "../../backends/contract.ts";
import { isoTime } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import {
  type AssistantMessage,
  type FilePart,
  type ImagePart,
  type Message,
  textOf,
  type UserMessage,
} from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { MaybePromise } from "../../stores/contract.ts";
import type { Harness, Operation } from "../agent-runtime.ts";
import { endedRuns } from "../backend/backend-notes.ts";
import { askAgain } from "../log/append.ts";
import type { PastOperation } from "../log/past-operation.ts";
import { runTools, type TurnLoop } from "../turn/turn-loop.ts";

/** How far a prompt had come. */
export interface PromptProgress {
  /** Answers that did not fit the result that was wanted, oldest first. */
  readonly refused: readonly string[];
  /** The provider refused to hold the model to the schema of the result. */
  readonly nativeRefused: boolean;
  /** The newest message, where it is an answer that asks for no more tools. */
  readonly answer: AssistantMessage | undefined;
  /** Runs of the backend that came to their end. */
  readonly runs: number;
}

export const notBegun: PromptProgress = { refused: [], nativeRefused: false, answer: undefined, runs: 0 };

/** The prompt that the operation was, when its words are in the log. */
export function pastPrompt({ past }: Operation): PastOperation | undefined {
  return past?.messages[0]?.role === "user" ? past : undefined;
}

/** Reads from the log of a prompt how far it had come. */
export function progressOf(past: PastOperation, backend: AgentBackend): PromptProgress {
  const { messages } = past;
  const refused: string[] = [];
  let nativeRefused = false;
  let before: Message | undefined;
  for (const message of messages) {
    if (message.role === "user" && message.source === "repair") {
      // Where there was no answer to repair, it was the schema that had to be said in words.
      const answer = answerIn(before);
      if (answer === undefined) nativeRefused = true;
      else refused.push(textOf(answer));
    }
    before = message;
  }
  const asked = refused.length + (nativeRefused ? 1 : 0);
  const newest = answerIn(before);
  if (backend.capabilities?.state !== true)
    return { refused, nativeRefused, answer: newest, runs: asked + (newest === undefined ? 0 : 1) };
  // An answer may be one step of such a backend: it says itself when it has ended.
  const runs = Math.max(asked, endedRuns(past));
  return { refused, nativeRefused, answer: runs > asked ? newest : undefined, runs };
}

/**
 * Brings the history of an interrupted prompt to where the model can go on: calls get their results,
 * and an answer that broke off is followed by the request to finish it. Where others have gone on with the session
 * meanwhile, its input keeps its place, and is asked about at the end.
 */
export async function settle(harness: Harness, operation: Operation, loop: TurnLoop): Promise<void> {
  const { past, state } = operation;
  if (past?.overtaken === true) {
    const [input] = past.messages;
    const isShown = state.positions.includes(past.first) || input === undefined;
    await say(harness, operation, { text: askAgain(isShown ? undefined : textOf(input)), source: "resume" });
    return;
  }
  const last = operation.state.messages.at(-1);
  if (last?.role !== "assistant" || answerIn(last) !== undefined) return;
  const calls = last.content.filter((part) => part.type === "tool_call");
  if (calls.length === 0) {
    await say(harness, operation, { text: "Your answer broke off. Go on from there.", source: "resume" });
    return;
  }
  const { rested } = operation;
  const turnId = rested?.turnId ?? createId("turn");
  await runTools(loop, calls, { turnId, interrupted: true, rested });
  loop.emit({ type: "turn_end", tool_calls: calls.length }, turnId);
  loop.signal.throwIfAborted();
}

/** The message, where it is one that the model had finished and that asks for no tools. */
function answerIn(message: Message | undefined): AssistantMessage | undefined {
  if (message?.role !== "assistant") return undefined;
  const { finish_reason, content } = message;
  if (finish_reason === "aborted" || finish_reason === "error") return undefined;
  return content.some((part) => part.type === "tool_call") ? undefined : message;
}

const idPattern = /^[\w.:-]{1,128}$/;

/** What a caller's id makes of a request for an operation. Throws `invalid_request` for one that is none. */
export function resumable(
  operationId: string | undefined,
  resumes = true,
): { readonly id?: string; readonly resumes?: boolean } {
  if (operationId === undefined) return {};
  if (typeof operationId === "string" && idPattern.test(operationId)) return { id: operationId, resumes };
  throw new KitError({
    code: "invalid_request",
    message: "An operation's id has 1 to 128 letters, digits, and the characters _ - . and :",
  });
}

interface Said {
  readonly text: string;
  /** Pictures and documents behind the text. */
  readonly files?: readonly (FilePart | ImagePart)[];
  readonly source?: UserMessage["source"];
  readonly shows?: UserMessage["shows"];
  /** Entries that stand before it. */
  readonly before?: readonly SessionEntry[];
  /** What the operation was asked: the log takes it once. */
  readonly isInput?: boolean;
}

/** Puts a message of the user, or of kit itself, at the end of the history. */
export function say(harness: Harness, operation: Operation, said: Said): MaybePromise<void> {
  const message: UserMessage = {
    role: "user",
    content: [{ type: "text", text: operation.mask?.(said.text) ?? said.text }, ...(said.files ?? [])],
    timestamp: isoTime(harness.runtime.clock.now()),
    ...(said.source === undefined ? {} : { source: said.source }),
    ...(said.shows === undefined ? {} : { shows: said.shows }),
  };
  const entry = { version: 1, type: "message", message, operation_id: operation.id } as const;
  return operation.append([...(said.before ?? []), entry], said.isInput === true ? operation.id : undefined);
}
