import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { UserMessage } from "../../protocol/message.ts";
import { textOf } from "../../protocol/message.ts";
import type { Harness, Operation } from "../agent-runtime.ts";
import { needsCompaction } from "../compaction/compact.ts";
import { defaultCompaction } from "../compaction/compaction-settings.ts";
import { guidelineEntries } from "../guidelines-in-loop.ts";
import { jsonSchemaOf } from "../output/json-schema-of.ts";
import { nativeOutput } from "../output/native-output.ts";
import { nativeResultRequest, resultRequest } from "../output/typed-output.ts";
import type { SessionState } from "../session/session-state.ts";
import { runTurns, type TurnLoop } from "../turn/turn-loop.ts";
import { createUsageReader } from "../turn/usage-reader.ts";
import { compactWith } from "./compact.ts";
import { type Prepared, prepare } from "./prepare.ts";
import { type PromptOptions, type PromptResult, toImagePart } from "./prompt-options.ts";
import { say } from "./say.ts";
import { repairLoop, runNative, typedOutput } from "./typed-answer.ts";

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
  const plain = toLoop(harness, operation, prepared);
  operation.emit({ type: "agent_start", model: prepared.resolved.name });
  const schema = options.result === undefined ? undefined : jsonSchemaOf(options.result);
  const native = nativeOutput(prepared.resolved, schema, plain.tools.length > 0);
  const wanted = native === undefined ? resultRequest(schema) : nativeResultRequest;
  const text = options.result === undefined ? request.text : `${request.text}\n\n${wanted}`;
  const written = say(harness, operation, {
    text,
    images: (options.images ?? []).map(toImagePart),
    ...(request.source === undefined ? {} : { source: request.source }),
  });
  if (written !== undefined) await written;
  const first = state.position;
  const { loop, ...answer } =
    native === undefined
      ? { loop: plain, message: await runTurns(plain) }
      : await runNative(harness, operation, { plain, native, schema });
  let { message } = answer;
  let result: Result | undefined;
  if (options.result !== undefined) {
    const repair = { ...repairLoop(loop, prepared, schema), purpose: "repair" } as const;
    const typed = await typedOutput(harness, { operation, repair, message, schema: options.result });
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
    toolRun: {
      tools,
      operationId: operation.id,
      signal: operation.signal,
      emit: operation.emit,
      validateJson: runtime.validateJson,
      ...(mask === undefined ? undefined : { mask }),
    },
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
      afterTools: guidelineEntries(runtime.project, {
        operation,
        tools,
        told: prepared.told,
        clock: runtime.clock,
      }),
    }),
  };
}

function reasoningOf(prepared: Prepared): Pick<LanguageModelV4CallOptions, "reasoning"> {
  const level = prepared.thinkingLevel;
  if (level === undefined) return {};
  return { reasoning: level === "off" ? "none" : level };
}

/** The messages from a position of the log on: what was said, and all that came of it. */
function messagesFrom({ messages, positions }: SessionState, position: number): PromptResult["messages"] {
  // Positions ascend, so the operation's own messages are at the end.
  let from = messages.length;
  while (from > 0 && (positions[from - 1] ?? 0) >= position) from -= 1;
  return messages.slice(from);
}
