import type { AgentBackend } from "../../backends/contract.ts";
import { isoTime } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import type { AssistantMessage, FilePart, ImagePart, Message, UserMessage } from "../../protocol/message.ts";
import { textOf } from "../../protocol/read-records.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { MaybePromise } from "../../stores/contract.ts";
import type { Harness, Operation } from "../agent-runtime.ts";
import type { JsonSchema } from "../define/tool.ts";
import { askAgain } from "../log/operation-log.ts";
import type { PastOperation } from "../log/past-operation.ts";
import {
  checkOutput,
  isRefusal,
  type NativeOutput,
  nativeOutput,
  repairRequest,
  resultRequest,
  type TypedOutputAttempt,
  TypedOutputError,
} from "../output/typed-output.ts";
import type { TurnLoop } from "../turn/loop-parts.ts";
import { runTools, runTurns } from "../turn/turn-loop.ts";
import type { PromptOptions } from "./options.ts";
import type { Prepared } from "./prepare.ts";

/** The progress of an interrupted prompt. */
interface PromptProgress {
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
  const repairRequests = refused.length + (nativeRefused ? 1 : 0);
  const newest = answerIn(before);
  if (backend?.capabilities?.state !== true)
    return { refused, nativeRefused, answer: newest, runs: repairRequests + (newest === undefined ? 0 : 1) };
  // An answer may be one step of such a backend, which logs its end itself.
  const { endedRuns } = await import("../backend/backend-request.ts");
  const runs = Math.max(repairRequests, endedRuns(past));
  return { refused, nativeRefused, answer: runs > repairRequests ? newest : undefined, runs };
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
  operation.emit({ type: "turn_end", tool_calls: calls.length }, turnId);
  operation.signal.throwIfAborted();
}

/** The message, if it is a finished answer without tool calls. */
function answerIn(message: Message | undefined): AssistantMessage | undefined {
  return message !== undefined && isAnswer(message) ? message : undefined;
}

/** Whether a message is a finished answer without tool calls. */
export function isAnswer(message: Message): message is AssistantMessage {
  if (message.role !== "assistant") return false;
  const { finish_reason, content } = message;
  if (finish_reason === "aborted" || finish_reason === "error") return false;
  return !content.some((part) => part.type === "tool_call");
}

interface NewUserMessage {
  readonly text: string;
  /** Images and documents after the text. */
  readonly files?: readonly (FilePart | ImagePart)[] | undefined;
  readonly source?: UserMessage["source"];
  readonly shows?: UserMessage["shows"];
  /** The client's own id of the message. */
  readonly clientId?: string | undefined;
  /** Entries before the message. */
  readonly before?: readonly SessionEntry[];
  /** Whether the message is the operation's input, which the log accepts once. */
  readonly isInput?: boolean;
  /** The operation of another input that brings the message, which the log accepts once. */
  readonly joinedFrom?: string;
}

/** Appends a message of the user, or of kit itself, to the history. */
export function appendUserMessage(
  harness: Pick<Harness, "runtime">,
  operation: Operation,
  { text, files = none, source, shows, clientId, before = none, isInput, joinedFrom }: NewUserMessage,
): MaybePromise<void> {
  const part = { type: "text", text: operation.mask?.(text) ?? text } as const;
  const message: { -readonly [Field in keyof UserMessage]: UserMessage[Field] } = {
    role: "user",
    content: files.length === 0 ? [part] : [part, ...files],
    timestamp: isoTime(harness.runtime.clock.now()),
  };
  if (source !== undefined) message.source = source;
  if (shows !== undefined) message.shows = shows;
  if (clientId !== undefined) message.client_id = clientId;
  if (joinedFrom !== undefined) message.joined_from = joinedFrom;
  const entry = { version: 1, type: "message", message, operation_id: operation.id } as const;
  return operation.log.append(before.length === 0 ? [entry] : [...before, entry], joinedFrom ?? isInput);
}

const none: readonly never[] = [];

const defaultTypedRetries = 3;

/** The answer of kit's own loop, or of the backend in its place, whose code is loaded when one is used. */
async function answerOf(loop: TurnLoop): Promise<AssistantMessage> {
  const { backend } = loop.work;
  if (backend === undefined) return runTurns(loop);
  const { runBackend } = await import("../backend/backend-run.ts");
  return await runBackend(loop, backend);
}

/** Runs the backend to its first answer, from the prompt's progress on. */
export async function firstAnswer(
  harness: Pick<Harness, "runtime">,
  operation: Operation,
  work: {
    readonly plain: TurnLoop;
    readonly native: NativeOutput | undefined;
    readonly schema: JsonSchema | undefined;
    readonly progress: PromptProgress;
    readonly repairOf: (loop: TurnLoop) => TurnLoop;
  },
): Promise<{ readonly loop: TurnLoop; readonly message: AssistantMessage }> {
  const { plain, native, schema, progress } = work;
  const loop = native === undefined ? plain : { ...plain, settings: { ...plain.settings, ...native } };
  if (progress.answer !== undefined) return { loop, message: progress.answer };
  if (progress.refused.length > 0) return { loop, message: await answerOf(work.repairOf(loop)) };
  return native === undefined
    ? { loop, message: await answerOf(loop) }
    : runNative(harness, operation, { plain, native: loop, schema });
}

/**
 * Runs turns with a schema that the provider enforces. If the provider refuses the schema, the prompt states it in
 * words instead, for this answer and all repairs.
 */
async function runNative(
  harness: Pick<Harness, "runtime">,
  operation: Operation,
  call: {
    readonly plain: TurnLoop;
    readonly native: TurnLoop;
    readonly schema: JsonSchema | undefined;
  },
): Promise<{ readonly loop: TurnLoop; readonly message: AssistantMessage }> {
  const { plain, native, schema } = call;
  try {
    return { loop: native, message: await answerOf({ ...native, mayDropSchema: true }) };
  } catch (error) {
    if (operation.signal.aborted || !isRefusal(error)) throw error;
    await appendUserMessage(harness, operation, { text: resultRequest(schema), source: "repair" });
    return { loop: plain, message: await answerOf(plain) };
  }
}

/**
 * The loop that repairs an answer. If the provider enforces a schema while no tools are called, the tools stay offered with
 * `toolChoice: none`, so that the prompt keeps its beginning. If it enforces a schema only without tools, they are left out,
 * unless the history has calls: providers require the tools of logged calls.
 */
export function repairLoop(loop: TurnLoop, { models }: Prepared, schema: JsonSchema | undefined): TurnLoop {
  const { structuredOutput } = models.current;
  if (loop.settings.responseFormat !== undefined || structuredOutput === "always") return loop;
  const native = nativeOutput(models.current, schema, false);
  if (native === undefined) return loop;
  if (structuredOutput === "without_calls")
    return { ...loop, settings: { ...loop.settings, ...native, toolChoice: { type: "none" } } };
  if (loop.operation.state.messages.some((message) => message.role === "tool")) return loop;
  return { ...loop, tools: [], settings: { ...loop.settings, ...native } };
}

interface TypedAnswer<Result> {
  readonly value: Result;
  readonly message: AssistantMessage;
}

/** Validates the answer and asks for repairs until it matches or the attempts are used up. */
export async function typedOutput<Result>(
  harness: Pick<Harness, "runtime">,
  work: {
    readonly operation: Operation;
    readonly repair: TurnLoop;
    readonly message: AssistantMessage;
    readonly schema: NonNullable<PromptOptions<Result>["result"]>;
    /** Answers from before an interruption that did not match. */
    readonly refused: readonly string[];
    readonly skill: string | undefined;
  },
): Promise<TypedAnswer<Result>> {
  const { operation, repair, schema } = work;
  const retries = operation.live.profile.typedRetries ?? defaultTypedRetries;
  const { validateJson } = harness.runtime;
  const attempts: TypedOutputAttempt[] = [];
  for (const text of work.refused) {
    const check = await checkOutput(text, schema, validateJson);
    attempts.push({ text, issues: check.ok ? [] : check.issues });
  }
  let { message } = work;
  for (;;) {
    const text = textOf(message);
    const check = await checkOutput(text, schema, validateJson);
    if (check.ok) return { value: check.value, message };
    attempts.push({ text, issues: check.issues });
    if (attempts.length > retries) throw new TypedOutputError(attempts, answererOf(work));
    operation.signal.throwIfAborted();
    await appendUserMessage(harness, operation, { text: repairRequest(check.issues), source: "repair" });
    message = await answerOf(repair);
  }
}

function answererOf({
  operation,
  skill,
}: {
  readonly operation: Operation;
  readonly skill: string | undefined;
}) {
  const { agent } = operation.live.key;
  return skill === undefined ? { agent } : { agent, skill };
}
