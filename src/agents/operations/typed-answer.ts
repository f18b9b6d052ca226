import type { AssistantMessage } from "../../protocol/message.ts";
import { textOf } from "../../protocol/message.ts";
import type { Harness, Operation } from "../agent-runtime.ts";
import { isRefusal, type NativeOutput, nativeOutput } from "../output/native-output.ts";
import {
  checkOutput,
  repairRequest,
  resultRequest,
  type TypedOutputAttempt,
  TypedOutputError,
} from "../output/typed-output.ts";
import type { JsonSchema } from "../tool.ts";
import { runTurns, type TurnLoop } from "../turn/turn-loop.ts";
import type { Prepared } from "./prepare.ts";
import type { PromptOptions } from "./prompt-options.ts";
import { say } from "./say.ts";

export const defaultTypedRetries = 3;

/**
 * Runs turns whose answer the provider holds to a schema. Where it refuses the schema, the model is
 * asked in words instead, and so is it for what comes after.
 */
export async function runNative(
  harness: Harness,
  operation: Operation,
  call: {
    readonly plain: TurnLoop;
    readonly native: NativeOutput;
    readonly schema: JsonSchema | undefined;
  },
): Promise<{ readonly loop: TurnLoop; readonly message: AssistantMessage }> {
  const { plain, native, schema } = call;
  const loop = { ...plain, settings: { ...plain.settings, ...native } };
  try {
    return { loop, message: await runTurns(loop) };
  } catch (error) {
    if (operation.signal.aborted || !isRefusal(error)) throw error;
    await say(harness, operation, { text: resultRequest(schema), source: "repair" });
    return { loop: plain, message: await runTurns(plain) };
  }
}

/**
 * The turns that repair an answer. Where the provider holds a model to a schema while it has no tools,
 * they are left out, unless the history has calls of them: providers want to see the tools of calls.
 */
export function repairLoop(loop: TurnLoop, { resolved }: Prepared, schema: JsonSchema | undefined): TurnLoop {
  if (loop.settings.responseFormat !== undefined || resolved.structuredOutput !== "without_tools")
    return loop;
  const native = nativeOutput(resolved, schema, false);
  if (native === undefined || loop.state.messages.some((message) => message.role === "tool")) return loop;
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
  },
): Promise<TypedAnswer<Result>> {
  const { operation, repair, schema } = given;
  const retries = operation.live.profile.typedRetries ?? defaultTypedRetries;
  const attempts: TypedOutputAttempt[] = [];
  let { message } = given;
  for (;;) {
    const text = textOf(message);
    const check = await checkOutput(text, schema, harness.runtime.validateJson);
    if (check.ok) return { value: check.value, message };
    attempts.push({ text, issues: check.issues });
    if (attempts.length > retries) throw new TypedOutputError(attempts);
    operation.signal.throwIfAborted();
    await say(harness, operation, { text: repairRequest(check.issues), source: "repair" });
    message = await runTurns(repair);
  }
}
