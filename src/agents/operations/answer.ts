import type { AgentBackend } from "../../backends/contract.ts";
import { createId } from "../../base/id.ts";
import type { AssistantMessage, Message } from "../../protocol/message.ts";
import { textOf } from "../../protocol/read-records.ts";
import type { Harness, Operation } from "../agent-runtime.ts";
import type { JsonSchema } from "../define/tool.ts";
import { askAgain } from "../log/after-others.ts";
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
import { runTools } from "../turn/run-tools.ts";
import { runTurns } from "../turn/turn-loop.ts";
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
export async function recoverHistory(loop: TurnLoop): Promise<void> {
  const { operation } = loop;
  const { past, state } = operation;
  if (past?.overtaken === true) {
    const [input] = past.messages;
    const isShown = state.positions.includes(past.first) || input === undefined;
    await operation.log.appendUserMessage(
      {
        text: askAgain(isShown ? undefined : textOf(input)),
        source: "resume",
      },
      operation.mask,
    );
    return;
  }
  const last = operation.state.messages.at(-1);
  if (last?.role !== "assistant" || answerIn(last) !== undefined) return;
  const calls = last.content.filter((part) => part.type === "tool_call");
  if (calls.length === 0) {
    await operation.log.appendUserMessage(
      {
        text: "Your answer broke off. Go on from there.",
        source: "resume",
      },
      operation.mask,
    );
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

const defaultTypedRetries = 3;

/** The answer of kit's own loop, or of the backend in its place, whose code is loaded when one is used. */
async function answerOf(loop: TurnLoop): Promise<AssistantMessage> {
  const { backend } = loop.work;
  if (backend === undefined) return runTurns(loop);
  const { runBackend } = await import("../backend/backend-run.ts");
  return await runBackend(loop, backend);
}

/** Runs the backend to its first answer, from the prompt's progress on. */
export async function firstAnswer(work: {
  readonly plain: TurnLoop;
  readonly native: NativeOutput | undefined;
  readonly schema: JsonSchema | undefined;
  readonly progress: PromptProgress;
  readonly repairOf: (loop: TurnLoop) => TurnLoop;
}): Promise<{ readonly loop: TurnLoop; readonly message: AssistantMessage }> {
  const { plain, native, schema, progress } = work;
  const loop = native === undefined ? plain : { ...plain, settings: { ...plain.settings, ...native } };
  if (progress.answer !== undefined) return { loop, message: progress.answer };
  if (progress.refused.length > 0) return { loop, message: await answerOf(work.repairOf(loop)) };
  return native === undefined
    ? { loop, message: await answerOf(loop) }
    : runNative({ plain, native: loop, schema });
}

/**
 * Runs turns with a schema that the provider enforces. If the provider refuses the schema, the prompt states it in
 * words instead, for this answer and all repairs.
 */
async function runNative(call: {
  readonly plain: TurnLoop;
  readonly native: TurnLoop;
  readonly schema: JsonSchema | undefined;
}): Promise<{ readonly loop: TurnLoop; readonly message: AssistantMessage }> {
  const { plain, native, schema } = call;
  const { operation } = plain;
  try {
    return { loop: native, message: await answerOf({ ...native, mayDropSchema: true }) };
  } catch (error) {
    if (operation.signal.aborted || !isRefusal(error)) throw error;
    await operation.log.appendUserMessage({ text: resultRequest(schema), source: "repair" }, operation.mask);
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
    await operation.log.appendUserMessage(
      { text: repairRequest(check.issues), source: "repair" },
      operation.mask,
    );
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
