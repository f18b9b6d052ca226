import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { isoTime } from "../../base/clock.ts";
import type { AssistantMessage, UserMessage } from "../../protocol/message.ts";
import { textOf } from "../../protocol/message.ts";
import type { MaybePromise } from "../../stores/contract.ts";
import type { Harness, Operation } from "../agent-runtime.ts";
import { needsCompaction } from "../compaction/compact.ts";
import { defaultCompaction } from "../compaction/compaction-settings.ts";
import { guidelineEntries } from "../guidelines-in-loop.ts";

import { jsonSchemaOf } from "../output/json-schema-of.ts";
import {
  checkOutput,
  repairRequest,
  resultRequest,
  type TypedOutputAttempt,
  TypedOutputError,
} from "../output/typed-output.ts";

import type { SessionState } from "../session/session-state.ts";
import { runTurns, type TurnLoop } from "../turn/turn-loop.ts";
import { createUsageReader } from "../turn/usage-reader.ts";
import { compactWith } from "./compact.ts";
import { type Prepared, prepare } from "./prepare.ts";
import { type PromptOptions, type PromptResult, toImagePart } from "./prompt-options.ts";

const defaultTypedRetries = 3;

/** Prompts the session's model and works until it has answered; the heart of every operation. */
export async function runPrompt<Result>(
  harness: Harness,
  operation: Operation,
  request: {
    readonly text: string;
    readonly options: PromptOptions<Result>;
    readonly source?: UserMessage["source"];
  },
): Promise<PromptResult<Result>> {
  const { options } = request;
  const { spending, state } = operation;
  const started = harness.runtime.clock.now();
  spending.budget = { ...operation.live.profile.budget, ...options.budget };
  const prepared = await prepare(harness, operation, options);
  const loop = toLoop(harness, operation, prepared);
  operation.emit({ type: "agent_start", model: prepared.resolved.name });
  const schema = options.result === undefined ? undefined : jsonSchemaOf(options.result);
  const text = options.result === undefined ? request.text : `${request.text}\n\n${resultRequest(schema)}`;
  const written = say(harness, operation, {
    text,
    images: (options.images ?? []).map(toImagePart),
    ...(request.source === undefined ? {} : { source: request.source }),
  });
  if (written !== undefined) await written;
  const first = state.position;
  let message = await runTurns(loop);
  let result: Result | undefined;
  if (options.result !== undefined) {
    const typed = await typedOutput(harness, { operation, loop, message, schema: options.result });
    message = typed.message;
    result = typed.value;
  }
  return {
    text: textOf(message),
    result: result as Result,
    usage: spending.usage,
    model: { id: prepared.resolved.name },
    metadata: {
      operation_id: operation.id,
      turns: spending.turns,
      duration_ms: harness.runtime.clock.now() - started,
      finish_reason: message.finish_reason,
    },
    messages: messagesFrom(state, first),
  };
}

interface Said {
  readonly text: string;
  readonly images?: readonly ReturnType<typeof toImagePart>[];
  readonly source?: UserMessage["source"];
}

function say(harness: Harness, operation: Operation, said: Said): MaybePromise<void> {
  const message: UserMessage = {
    role: "user",
    content: [{ type: "text", text: said.text }, ...(said.images ?? [])],
    timestamp: isoTime(harness.runtime.clock.now()),
    ...(said.source === undefined ? {} : { source: said.source }),
  };
  return operation.append([{ version: 1, type: "message", message, operation_id: operation.id }]);
}

function toLoop(harness: Harness, operation: Operation, prepared: Prepared): TurnLoop {
  const { runtime } = harness;
  const { resolved, tools, mask } = prepared;
  const { profile } = operation.live;
  const settings = { ...defaultCompaction, ...profile.compaction };
  const windowTokens = resolved.contextWindowTokens ?? settings.contextWindowTokens;
  const showsGuidelines = profile.guidelines !== false && runtime.project !== undefined;
  return {
    state: operation.state,
    commit: operation.commit,
    model: resolved.model,
    modelName: resolved.name,
    system: prepared.system,
    tools: prepared.schemas,
    toolRun: { tools, validateJson: runtime.validateJson, ...(mask === undefined ? undefined : { mask }) },
    settings: reasoningOf(prepared),
    operationId: operation.id,
    purpose: "agent",
    spending: operation.spending,
    retry: runtime.retry,
    idleTimeoutMs: runtime.modelIdleTimeoutMs,
    clock: runtime.clock,
    signal: operation.signal,
    emit: operation.emit,
    usageOf: createUsageReader(resolved.price),
    makesRoom: (reason) =>
      reason === "overflow"
        ? settings.enabled
        : needsCompaction(operation.state.tokens, windowTokens, settings),
    makeRoom: async (reason) => {
      await compactWith(harness, operation, { reason, resolved });
    },
    ...(showsGuidelines && {
      afterTools: guidelineEntries(runtime.project, { operation, tools, clock: runtime.clock }),
    }),
  };
}

function reasoningOf(prepared: Prepared): Pick<LanguageModelV4CallOptions, "reasoning"> {
  const level = prepared.thinkingLevel;
  if (level === undefined) return {};
  return { reasoning: level === "off" ? "none" : level };
}

interface TypedAnswer<Result> {
  readonly value: Result;
  readonly message: AssistantMessage;
}

/** Validates the answer, and asks again with what is wrong until it fits or the attempts are used up. */
async function typedOutput<Result>(
  harness: Harness,
  given: {
    readonly operation: Operation;
    readonly loop: TurnLoop;
    readonly message: AssistantMessage;
    readonly schema: NonNullable<PromptOptions<Result>["result"]>;
  },
): Promise<TypedAnswer<Result>> {
  const { operation, loop, schema } = given;
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
    message = await runTurns({ ...loop, purpose: "repair" });
  }
}

/** The messages from a position of the log on: what was said, and all that came of it. */
function messagesFrom({ messages, positions }: SessionState, position: number): PromptResult["messages"] {
  // Positions ascend, so the operation's own messages are at the end.
  let from = messages.length;
  while (from > 0 && (positions[from - 1] ?? 0) >= position) from -= 1;
  return messages.slice(from);
}
