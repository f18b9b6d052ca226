import { type AssistantMessage, textOf } from "../../protocol/message.ts";
import type { Harness, Operation } from "../agent-runtime.ts";
import { runBackend } from "../backend/backend-run.ts";
import type { JsonSchema } from "../define/tool.ts";
import { isRefusal, type NativeOutput, nativeOutput } from "../output/native-output.ts";
import {
  checkOutput,
  repairRequest,
  resultRequest,
  type TypedOutputAttempt,
  TypedOutputError,
} from "../output/typed-output.ts";
import type { TurnLoop } from "../turn/turn-loop.ts";
import { type PromptProgress, say } from "./input.ts";
import type { Prepared } from "./prepare.ts";
import type { PromptOptions } from "./prompt-options.ts";

const defaultTypedRetries = 3;

/** Runs the backend until there is an answer, from where the prompt had come to. */
export async function firstAnswer(
  harness: Harness,
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
  if (progress.refused.length > 0) return { loop, message: await runBackend(work.repairOf(loop)) };
  return native === undefined
    ? { loop, message: await runBackend(loop) }
    : runNative(harness, operation, { plain, native: loop, schema });
}

/**
 * Runs turns whose answer the provider holds to a schema. Where it refuses the schema, the model is
 * asked in words instead, and so is it for what comes after.
 */
async function runNative(
  harness: Harness,
  operation: Operation,
  call: {
    readonly plain: TurnLoop;
    readonly native: TurnLoop;
    readonly schema: JsonSchema | undefined;
  },
): Promise<{ readonly loop: TurnLoop; readonly message: AssistantMessage }> {
  const { plain, native, schema } = call;
  try {
    return { loop: native, message: await runBackend(native) };
  } catch (error) {
    if (operation.signal.aborted || !isRefusal(error)) throw error;
    await say(harness, operation, { text: resultRequest(schema), source: "repair" });
    return { loop: plain, message: await runBackend(plain) };
  }
}

/**
 * The turns that repair an answer. Where the provider holds a model to a schema while it calls no tools, they are offered as
 * before and may not be called: the prompt keeps its beginning. Where it does so only without tools, they are left out, unless
 * the history has calls of them: providers want to see the tools of calls.
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

/** Validates the answer, and asks again with what is wrong until it fits or the attempts are used up. */
export async function typedOutput<Result>(
  harness: Harness,
  given: {
    readonly operation: Operation;
    readonly repair: TurnLoop;
    readonly message: AssistantMessage;
    readonly schema: NonNullable<PromptOptions<Result>["result"]>;
    /** Answers that did not fit, of before the operation was interrupted. */
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
    await say(harness, operation, { text: repairRequest(check.issues), source: "repair" });
    message = await runBackend(repair);
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
