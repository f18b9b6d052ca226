import type { AssistantMessage } from "../../protocol/message.ts";
import { textOf } from "../../protocol/message-text.ts";
import type { Harness, Operation } from "../agent-runtime.ts";
import type { JsonSchema } from "../define/tool.ts";
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
import { runTurns } from "../turn/run-turns.ts";
import type { TurnLoop } from "../turn/turn-loop.ts";
import { appendUserMessage, type PromptProgress } from "./input.ts";
import type { PromptOptions } from "./options.ts";
import type { Prepared } from "./prepare.ts";

const defaultTypedRetries = 3;

/** The answer of kit's own loop, or of the backend in its place, whose code is loaded when one is used. */
async function answerOf(loop: TurnLoop): Promise<AssistantMessage> {
  const { backend } = loop.work;
  if (backend === undefined) return await runTurns(loop);
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
    return { loop: native, message: await answerOf(native) };
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
  if (loop.state.messages.some((message) => message.role === "tool")) return loop;
  return { ...loop, tools: [], settings: { ...loop.settings, ...native } };
}

interface TypedAnswer<Result> {
  readonly value: Result;
  readonly message: AssistantMessage;
}

/** Validates the answer and asks for repairs until it matches or the attempts are used up. */
export async function typedOutput<Result>(
  harness: Pick<Harness, "runtime">,
  given: {
    readonly operation: Operation;
    readonly repair: TurnLoop;
    readonly message: AssistantMessage;
    readonly schema: NonNullable<PromptOptions<Result>["result"]>;
    /** Answers from before an interruption that did not match. */
    readonly refused: readonly string[];
    readonly skill: string | undefined;
  },
): Promise<TypedAnswer<Result>> {
  const { operation, repair, schema } = given;
  const retries = operation.live.profile.typedRetries ?? defaultTypedRetries;
  const { validateJson } = harness.runtime;
  const attempts: TypedOutputAttempt[] = [];
  for (const text of given.refused) {
    const check = await checkOutput(text, schema, validateJson);
    attempts.push({ text, issues: check.ok ? [] : check.issues });
  }
  let { message } = given;
  for (;;) {
    const text = textOf(message);
    const check = await checkOutput(text, schema, validateJson);
    if (check.ok) return { value: check.value, message };
    attempts.push({ text, issues: check.issues });
    if (attempts.length > retries) throw new TypedOutputError(attempts, askedOf(given));
    operation.signal.throwIfAborted();
    await appendUserMessage(harness, operation, { text: repairRequest(check.issues), source: "repair" });
    message = await answerOf(repair);
  }
}

function askedOf({
  operation,
  skill,
}: {
  readonly operation: Operation;
  readonly skill: string | undefined;
}) {
  const { agent } = operation.live.key;
  return skill === undefined ? { agent } : { agent, skill };
}
