import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { isoTime } from "../../base/clock.ts";
import type { UserMessage } from "../../protocol/message.ts";
import { textOf } from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import { addUsage, noUsage, type Usage } from "../../protocol/usage.ts";
import type { Harness, Operation } from "../agent-runtime.ts";
import { compact, needsCompaction } from "../compaction/compact.ts";
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

import { runTurns, type TurnLoop, type TurnLoopResult } from "../turn/turn-loop.ts";
import { createUsageReader } from "../turn/usage-reader.ts";
import { maskedResult } from "./masked-result.ts";
import { type Prepared, prepare } from "./prepare.ts";
import { type PromptOptions, type PromptResult, toImagePart } from "./prompt-options.ts";

export const defaultTypedRetries = 3;

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
  const started = harness.runtime.clock.now();
  const prepared = await prepare(harness, operation, options);
  const loop = toLoop(harness, operation, { prepared, options });
  operation.emit({ type: "agent_start", model: prepared.resolved.name });
  const first = operation.state.position;
  const schema = options.result === undefined ? undefined : jsonSchemaOf(options.result);
  const text = options.result === undefined ? request.text : `${request.text}\n\n${resultRequest(schema)}`;
  await say(harness, operation, {
    text,
    images: (options.images ?? []).map(toImagePart),
    ...(request.source === undefined ? {} : { source: request.source }),
  });
  const answer = await runTurns(loop);
  const typed =
    options.result === undefined
      ? undefined
      : await typedOutput(harness, { operation, loop, answer, options });
  const last = typed?.answer ?? answer;
  return {
    text: textOf(last.message),
    result: typed?.value as Result,
    usage: addUsage(answer.usage, typed?.usage ?? noUsage),
    model: { id: prepared.resolved.name },
    metadata: {
      operation_id: operation.id,
      turns: answer.turns + (typed?.turns ?? 0),
      duration_ms: harness.runtime.clock.now() - started,
      finish_reason: last.message.finish_reason,
    },
    messages: messagesSince(operation, first),
  };
}

interface Said {
  readonly text: string;
  readonly images?: readonly ReturnType<typeof toImagePart>[];
  readonly source?: UserMessage["source"];
}

async function say(harness: Harness, operation: Operation, said: Said): Promise<void> {
  const message: UserMessage = {
    role: "user",
    content: [{ type: "text", text: said.text }, ...(said.images ?? [])],
    timestamp: isoTime(harness.runtime.clock.now()),
    ...(said.source === undefined ? {} : { source: said.source }),
  };
  const entry: SessionEntry = { version: 1, type: "message", message, operation_id: operation.id };
  const written = operation.commit([entry]);
  if (written !== undefined) await written;
}

function toLoop(
  harness: Harness,
  operation: Operation,
  call: { readonly prepared: Prepared; readonly options: PromptOptions },
): TurnLoop {
  const { runtime } = harness;
  const { prepared, options } = call;
  const { profile } = operation.live;
  const settings = { ...defaultCompaction, ...profile.compaction };
  const windowTokens = prepared.resolved.contextWindowTokens ?? settings.contextWindowTokens;
  const model = prepared.resolved.model;
  const idleTimeoutMs = runtime.modelIdleTimeoutMs;
  return {
    state: operation.state,
    commit: operation.commit,
    model,
    modelName: prepared.resolved.name,
    system: prepared.system,
    tools: prepared.schemas,
    toolRun: {
      tools: prepared.tools,
      validateJson: runtime.validateJson,
      ...maskWith(prepared.mask),
    },
    settings: reasoningOf(prepared),
    operationId: operation.id,
    purpose: "agent",
    budget: { ...profile.budget, ...options.budget },
    retry: runtime.retry,
    idleTimeoutMs,
    clock: runtime.clock,
    signal: operation.signal,
    emit: operation.emit,
    usageOf: createUsageReader(prepared.resolved.price),
    beforeTurn: async (reason) => {
      if (reason === "threshold" && !needsCompaction(operation.state.tokens, windowTokens, settings)) return;
      const summaryModel =
        settings.model === undefined ? model : (await runtime.resolveModel(settings.model)).model;
      await compact({
        operation,
        reason,
        settings,
        windowTokens,
        call: { model: summaryModel, idleTimeoutMs },
        now: runtime.clock.now,
      });
    },
    ...(profile.guidelines === false || runtime.project === undefined
      ? {}
      : {
          afterTools: guidelineEntries(runtime.project, {
            operation,
            tools: prepared.tools,
            clock: runtime.clock,
          }),
        }),
  };
}

function maskWith(mask: Prepared["mask"]): Pick<TurnLoop["toolRun"], "onResult"> {
  return mask === undefined ? {} : { onResult: (_call, result) => maskedResult(result, mask) };
}

function reasoningOf(prepared: Prepared): Pick<LanguageModelV4CallOptions, "reasoning"> {
  const level = prepared.thinkingLevel;
  if (level === undefined) return {};
  return { reasoning: level === "off" ? "none" : level };
}

interface TypedAnswer<Result> {
  readonly value: Result;
  readonly answer: TurnLoopResult;
  readonly usage: Usage;
  readonly turns: number;
}

/** Validates the answer, and asks again with what is wrong until it fits or the attempts are used up. */
async function typedOutput<Result>(
  harness: Harness,
  given: {
    readonly operation: Operation;
    readonly loop: TurnLoop;
    readonly answer: TurnLoopResult;
    readonly options: PromptOptions<Result>;
  },
): Promise<TypedAnswer<Result>> {
  const { operation, loop, options } = given;
  const schema = options.result;
  if (schema === undefined) throw new TypeError("A typed output needs a schema.");
  const retries = operation.live.profile.typedRetries ?? defaultTypedRetries;
  const attempts: TypedOutputAttempt[] = [];
  let answer = given.answer;
  let usage = noUsage;
  let turns = 0;
  for (;;) {
    const text = textOf(answer.message);
    const check = await checkOutput(text, schema, harness.runtime.validateJson);
    if (check.ok) return { value: check.value, answer, usage, turns };
    attempts.push({ text, issues: check.issues });
    if (attempts.length > retries) throw new TypedOutputError(attempts);
    await say(harness, operation, { text: repairRequest(check.issues), source: "repair" });
    answer = await runTurns({ ...loop, purpose: "repair" });
    usage = addUsage(usage, answer.usage);
    turns += answer.turns;
  }
}

function messagesSince(operation: Operation, position: number): PromptResult["messages"] {
  const { messages, positions } = operation.state;
  // Positions ascend, so the operation's own messages are at the end.
  let from = messages.length;
  while (from > 0 && (positions[from - 1] ?? 0) > position) from -= 1;
  return messages.slice(from);
}
