import { isoTime } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import type {
  AssistantMessage,
  Message,
  TextPart,
  ToolCallPart,
  UserMessage,
} from "../../protocol/message.ts";
import type { PastMessage } from "../../protocol/prompt.ts";
import { noUsage, textOf } from "../../protocol/read-records.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { BackendWork, Operation } from "../agent-runtime.ts";
import type { PastOperation } from "../log/past-operation.ts";
import type { SessionState } from "../log/session-state.ts";
import {
  checkOutput,
  jsonSchemaOf,
  type NativeOutput,
  nativeOutput,
  nativeResultRequest,
  resultRequest,
} from "../output/typed-output.ts";
import { guidelineEntries } from "../prompt/guidelines.ts";
import { checkFiles, toFilePart, toImagePart } from "../prompt/input-files.ts";
import { noBudget } from "../turn/budget.ts";
import type { LoopSession, TurnLoop } from "../turn/loop-parts.ts";
import type { ToolRunOptions } from "../turn/tool-calls.ts";
import { runTurns } from "../turn/turn-loop.ts";
import { compactionOf, noSettings } from "../turn/turn-settings.ts";
import { firstAnswer, noProgressYet, progressOf, recoverHistory, repairLoop, typedOutput } from "./answer.ts";
import type { PromptOptions, PromptResult } from "./options.ts";
import { fallbackOf, type Prepared, type PromptHost, prepare } from "./prepare.ts";
import { toolRunOf } from "./tool-run.ts";

interface PromptWork<Result> {
  readonly text: string;
  readonly options: PromptOptions<Result>;
  readonly source?: UserMessage["source"];
  /** The skill that the text comes from. */
  readonly skill?: string;
  readonly shows?: UserMessage["shows"];
}

/**
 * Prompts the session's model and runs turns until it has answered; the core of every operation. An interrupted
 * prompt resumes from its log; a finished one returns its logged answer.
 */
export async function runPrompt<Result>(
  harness: PromptHost,
  operation: Operation,
  request: PromptWork<Result>,
): Promise<PromptResult<Result>> {
  const { spending, state } = operation;
  const { runtime } = harness;
  const { budget, output } = operation.live.profile;
  let { options } = request;
  // A prompt without a `result` schema uses the agent's `output` schema, except in a task.
  if (output !== undefined && options.result === undefined && operation.task_id === undefined)
    options = { ...options, result: output as PromptOptions<Result>["result"] };
  spending.budget = options.budget === undefined ? (budget ?? noBudget) : { ...budget, ...options.budget };
  // The past operation, if the log has its prompt.
  const past = operation.past?.messages[0]?.role === "user" ? operation.past : undefined;
  const { backend: choice = operation.live.profile.backend ?? "typed" } = options;
  const backend = choice === "typed" ? undefined : await runtime.resolveBackend(choice);
  const progress = past === undefined ? noProgressYet : await progressOf(past, backend);
  const logged =
    progress.answer === undefined ? undefined : await loggedAnswer(harness, progress.answer, options);
  if (past !== undefined && logged !== undefined) {
    const until = Date.parse(logged.message.timestamp);
    return toResult(operation, { ...logged, from: fromPast(past, state), until });
  }
  const started = runtime.clock.now();
  const prepared = await prepare(harness, operation, options);
  const partialResult = options.result === undefined ? undefined : await loadPartialResult();
  const plain = toLoop(harness, operation, {
    prepared,
    backend,
    runs: progress.runs,
    partialResult,
    attempts: options.attempts,
  });
  if (!operation.events.skip()) operation.emit({ type: "agent_start", model: prepared.models.current.name });
  const schema = options.result === undefined ? undefined : jsonSchemaOf(options.result);
  const native =
    schema === undefined || progress.nativeRefused
      ? undefined
      : nativeOutput(prepared.models.current, schema, plain.tools.length > 0);
  if (past === undefined) {
    let { text } = request;
    if (options.result !== undefined) {
      // A fallback model may not enforce the schema: the prompt states it as well.
      const isEnforced = native !== undefined && !prepared.models.hasOthers;
      text += `\n\n${isEnforced ? nativeResultRequest : resultRequest(schema)}`;
    }
    const { source, shows } = request;
    const { history = none, clientId } = options;
    const input = {
      before:
        history.length === 0
          ? prepared.news
          : [...pastEntries(harness, operation, history), ...prepared.news],
      text,
      files: (options.images ?? options.files) === undefined ? undefined : filesOf(options, prepared),
      source,
      shows,
      clientId,
      isInput: source !== "resume", // The log has that input, whose message joined another operation.
    };
    const written = operation.log.appendUserMessage(input, operation.mask);
    if (written !== undefined) await written;
  }
  const from = past === undefined ? { first: state.position, started, before: none } : fromPast(past, state);
  if (past !== undefined) {
    await recoverHistory(plain);
    if (prepared.news.length > 0) await operation.log.append(prepared.news);
  }
  if (backend === undefined && options.result === undefined && past === undefined) {
    const message = await runTurns(plain);
    return toResult<Result>(operation, { message, result: undefined, from, until: runtime.clock.now() });
  }
  const call = { request, options, prepared, plain, progress, native, schema };
  const { message, value: result } = await otherAnswer(harness, operation, call);
  return toResult(operation, { message, result, from, until: runtime.clock.now() });
}

/** A prompt that has a schema, a backend or a past. */
interface OtherPrompt<Result> extends Omit<Parameters<typeof firstAnswer>[0], "repairOf"> {
  readonly request: PromptWork<Result>;
  readonly options: PromptOptions<Result>;
  readonly prepared: Prepared;
}

/** A function of its own: a prompt without schema, backend and past does not keep what this one closes over. */
async function otherAnswer<Result>(
  harness: PromptHost,
  operation: Operation,
  call: OtherPrompt<Result>,
): ReturnType<typeof typedOutput<Result>> {
  const { plain } = call;
  if (plain.work.backend === undefined) return await answerTyped(harness, operation, call);
  const { withParts } = await import("../backend/backend-steps.ts");
  return await withParts(plain, () => answerTyped(harness, operation, call));
}

async function answerTyped<Result>(
  harness: PromptHost,
  operation: Operation,
  call: OtherPrompt<Result>,
): ReturnType<typeof typedOutput<Result>> {
  const { request, options, prepared, plain, progress, native, schema } = call;
  const repairOf = (loop: TurnLoop): TurnLoop => ({
    ...repairLoop(loop, prepared, schema),
    purpose: "repair",
    joins: false, // The request is about the answer only.
  });
  const first = { plain, native, schema, progress, repairOf };
  const { loop, message } = await firstAnswer(first);
  if (options.result === undefined) return { message, value: undefined as Result };
  return typedOutput(harness, {
    operation,
    repair: repairOf(loop),
    message,
    schema: options.result,
    refused: progress.refused,
    skill: request.skill,
  });
}

/** The files of a prompt. Throws `invalid_request` for one that the model does not read. */
function filesOf(
  { images = [], files: documents = [] }: PromptOptions,
  { models }: Prepared,
): Parameters<typeof checkFiles>[1] {
  const files = [...images.map(toImagePart), ...documents.map(toFilePart)];
  checkFiles(models.current, files);
  return files;
}

/**
 * The entries of a history that the caller gives. They are of an operation of their own, so that nothing takes them for work of
 * this one, and the model of their answers is `unknown`.
 */
function pastEntries(
  { runtime }: PromptHost,
  { state, mask }: Operation,
  history: readonly PastMessage[],
): readonly SessionEntry[] {
  if (state.position > 0)
    throw new KitError({
      code: "conflict",
      message: "A history can be given to a new session only, and this one has begun.",
      hint: "Begin a new session, or leave the history out: the session has its own.",
    });
  const operation_id = createId("op");
  const timestamp = isoTime(runtime.clock.now());
  const answered = { model: "unknown", usage: noUsage, finish_reason: "stop" } as const;
  return history.map(({ role, content: said }) => {
    const content: readonly TextPart[] = [{ type: "text", text: mask?.(said) ?? said }];
    const message: Message =
      role === "user"
        ? { role, content: [...content], timestamp }
        : { role, content: [...content], timestamp, ...answered };
    return { version: 1, type: "message", message, operation_id };
  });
}

/** The logged answer, if it matches the requested result. */
async function loggedAnswer<Result>(
  harness: PromptHost,
  message: AssistantMessage,
  { result: schema }: PromptOptions<Result>,
): Promise<{ readonly message: AssistantMessage; readonly result: Result | undefined } | undefined> {
  if (schema === undefined) return { message, result: undefined };
  const check = await checkOutput(textOf(message), schema, harness.runtime.validateJson);
  return check.ok ? { message, result: check.value } : undefined;
}

/** Where a prompt starts: its log position, and the time in milliseconds. */
interface PromptStart {
  readonly first: number;
  readonly started: number;
  /** Its messages before that position; other operations lie between. */
  readonly before: PromptResult["messages"];
}

/** An overtaken prompt continues after the operations that overtook it. */
function fromPast({ first, messages, overtaken }: PastOperation, state: SessionState): PromptStart {
  const started = Date.parse(messages[0]?.timestamp ?? "");
  return overtaken
    ? { first: state.position + 1, started, before: messages }
    : { first, started, before: [] };
}

function toResult<Result>(
  { id, spending, state }: Operation,
  end: {
    readonly message: AssistantMessage;
    readonly result: Result | undefined;
    readonly from: PromptStart;
    readonly until: number;
  },
): PromptResult<Result> {
  const { message, from } = end;
  // Positions ascend, so the operation's own messages are at the end.
  let first = state.messages.length;
  while (first > 0 && (state.positions[first - 1] ?? 0) >= from.first) first -= 1;
  const messages = state.messages.slice(first);
  return {
    text: textOf(message),
    result: end.result as Result,
    usage: spending.usage,
    model: { id: message.model },
    metadata: {
      operation_id: id,
      turns: spending.turns,
      duration_ms: end.until - from.started,
      finish_reason: message.finish_reason,
    },
    messages: from.before.length === 0 ? messages : [...from.before, ...messages],
  };
}

function toLoop(
  harness: PromptHost,
  operation: Operation,
  {
    prepared,
    backend,
    runs,
    partialResult,
    attempts,
  }: Pick<BackendWork, "backend" | "runs"> &
    Pick<TurnLoop, "partialResult"> &
    Pick<PromptOptions, "attempts"> & { readonly prepared: Prepared },
): TurnLoop {
  const { runtime } = harness;
  const { models, thinkingLevel } = prepared;
  const { profile } = operation.live;
  // Every field stands here: an object that grows by spreads costs several times as much.
  return {
    operation,
    store: harness.store,
    work: { backend, runs, projectRoot: runtime.projectRoot },
    session: new PromptSession(harness, operation, prepared),
    resolved: models.current,
    fallback: models.hasOthers ? fallbackOf(models) : undefined,
    prompt: prepared.prompt,
    partialResult,
    tools: prepared.schemas,
    settings:
      thinkingLevel === undefined
        ? noSettings
        : { reasoning: thinkingLevel === "off" ? "none" : thinkingLevel },
    modelSettings: prepared.modelSettings,
    forcedTools: prepared.forcedTools,
    hooks: prepared.hooks?.ofTurns,
    purpose: "agent",
    retry: attempts === undefined ? runtime.retry : { ...runtime.retry, attempts, isFinal: true },
    idleTimeoutMs: profile.modelIdleTimeoutMs ?? runtime.modelIdleTimeoutMs,
    clock: runtime.clock,
    joins: runtime.joins !== undefined,
  };
}

const none: readonly never[] = [];

/** Creates the readers of typed answers. */
async function loadPartialResult(): Promise<TurnLoop["partialResult"]> {
  const { PartialResult } = await import("../output/partial-result.ts");
  return () => new PartialResult();
}

/** The session around the turns of a prompt. A class: each of its functions would live as long as the prompt. */
export class PromptSession implements LoopSession {
  readonly #harness: PromptHost;
  readonly #operation: Operation;
  readonly #prepared: Prepared;
  #toolRun: ToolRunOptions | undefined;

  constructor(harness: PromptHost, operation: Operation, prepared: Prepared) {
    this.#harness = harness;
    this.#operation = operation;
    this.#prepared = prepared;
    this.#toolRun = undefined;
  }

  toolRun(): ToolRunOptions {
    this.#toolRun ??= toolRunOf(this.#harness, this.#operation, this.#prepared);
    return this.#toolRun;
  }

  join(): Promise<void> | undefined {
    const [harness, operation] = [this.#harness, this.#operation];
    const ids = harness.runtime.joins?.ids(operation.live.key) ?? [];
    if (ids.length === 0) return undefined;
    const model = this.#prepared.models.current;
    return import("./join-inputs.ts").then(({ joinInputs }) =>
      joinInputs(harness, operation, { ids, model }),
    );
  }

  needsRoom(reason: "threshold" | "overflow"): boolean {
    const { live, state } = this.#operation;
    const settings = compactionOf(live.profile);
    if (reason === "overflow") return settings.enabled;
    const window = this.#prepared.models.current.contextWindowTokens ?? settings.contextWindowTokens;
    // Whether the history leaves too little room for an answer.
    return settings.enabled && state.tokens > window - settings.reserveTokens;
  }

  async makeRoom(reason: "threshold" | "overflow"): Promise<void> {
    const { models, prompt } = this.#prepared;
    const { compactWith } = await import("../compaction/compact.ts");
    await compactWith(this.#harness, this.#operation, { reason, resolved: models.current });
    prompt.renew();
  }

  afterTools(calls: readonly ToolCallPart[]): Promise<readonly SessionEntry[]> | undefined {
    const [operation, { repository, promptFiles, tools }] = [this.#operation, this.#prepared];
    if (operation.live.profile.guidelines === false || repository === undefined) return undefined;
    const { clock } = this.#harness.runtime;
    return guidelineEntries(repository, calls, { operation, tools, promptFiles, clock });
  }

  nativeOutput(...asked: Parameters<LoopSession["nativeOutput"]>): NativeOutput | undefined {
    return nativeOutput(this.#prepared.models.current, ...asked);
  }
}
