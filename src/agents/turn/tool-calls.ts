import type { StandardSchemaV1 } from "@standard-schema/spec";
import { isStandardSchema, issueText } from "../../base/standard-schema.ts";
import type { ApprovalDecision } from "../../protocol/approval.ts";
import type { EventBody } from "../../protocol/event.ts";
import type { ToolCallPart, ToolResultPart } from "../../protocol/message.ts";
import { outageOf } from "../../protocol/outage.ts";
import type { AgentRuntime } from "../agent-runtime.ts";
import type { ToolGate } from "../approvals/call-gate.ts";
import { callerKind, kindOf, toAnswer } from "../approvals/call-kinds.ts";
import { type GateRequest, passGate } from "../approvals/pass-gate.ts";
import { builtInToolNames } from "../define/profile-settings.ts";
import type { ToolDefinition, ToolLookup, ValidateJson } from "../define/tool.ts";
import type { EventHub, OperationTracing } from "../events.ts";
import { Postponed, Suspension } from "../log/suspension.ts";
import type { SecretMask } from "../secrets.ts";
import type { ToolHooks } from "./hook-calls.ts";
import { type Execution, execute, type RunningTools, resumesLater, thrownOutcome } from "./run-tool.ts";
import {
  type CallContext,
  type CallParts,
  failed,
  type Outcome,
  RunningCall,
  resultText,
  toResult,
} from "./running-call.ts";

/** Options that all tool calls of one operation share. */
export interface ToolRunOptions {
  readonly tools: ToolLookup;
  readonly operationId: string;
  readonly signal: AbortSignal;
  readonly emit: (body: EventBody, turnId: string) => void;
  readonly events: Pick<EventHub, "skip">;
  readonly running: RunningTools;
  readonly validateJson: ValidateJson;
  /** The session and application of the calls; undefined for an agent without an application. */
  readonly place?: CallContext | undefined;
  readonly hooks?: ToolHooks | undefined;
  /** Decides about every call before it runs. */
  readonly gate: ToolGate;
  /** Called when a tool starts; returns the callback for its end. */
  readonly begin?: ((tool: string) => (() => void) | undefined) | undefined;
  /** Masks secrets in every text of a result, before it is cut to its length. */
  readonly mask?: SecretMask | undefined;
  /** The operation's spans; undefined if tracing is off. */
  readonly tracing?: OperationTracing | undefined;
  /** The cause of a failure for its event. */
  readonly causeOf?: AgentRuntime["causeOf"];
}

/** The turn that requested the calls. */
export interface ToolTurn {
  readonly id: string;
  /** Identifies the turn's calls in the session; with a call's index, its idempotency key. */
  readonly callKey: string;
  /** Whether the process ended while these calls ran: calls that may not run twice do not run again. */
  readonly interrupted?: boolean;
  /** The suspension in which these calls waited. */
  readonly suspension?: Suspension | undefined;
  /** Why a call of the turn is postponed, if that is not the signal. */
  postponed?: unknown;
}

/**
 * Runs the calls of one turn and returns a result for each, in their order.
 *
 * Calls run in parallel, unless one of them is `exclusive`. Tools never make it throw: bad arguments, failures,
 * timeouts and aborts become results that the model reads. The result is undefined for a postponed call, which
 * continues when its operation resumes.
 */
export function runToolCalls(
  calls: readonly ToolCallPart[],
  turn: ToolTurn,
  options: ToolRunOptions,
): Promise<readonly (ToolResultPart | undefined)[]> {
  options.gate.begin(calls.length);
  const [only] = calls;
  return only !== undefined && calls.length === 1
    ? runToolCall({ call: only, key: keyOf(turn, 0) }, turn, options)
    : runSeveral(calls, turn, options);
}

async function runSeveral(
  calls: readonly ToolCallPart[],
  turn: ToolTurn,
  options: ToolRunOptions,
): Promise<readonly (ToolResultPart | undefined)[]> {
  const keyedCalls = calls.map((call, at) => ({ call, key: keyOf(turn, at) }));
  if (!calls.some((call) => options.tools.get(call.tool)?.exclusive === true))
    return (await Promise.all(keyedCalls.map((call) => runToolCall(call, turn, options)))).map(
      ([result]) => result,
    );
  const results: (ToolResultPart | undefined)[] = [];
  for (const call of keyedCalls) results.push(...(await runToolCall(call, turn, options)));
  // `slice` allocates the exact length, which matters for arrays that stay in the history.
  return results.slice();
}

interface KeyedCall {
  readonly call: ToolCallPart;
  readonly key: string;
  /** The arguments that the model gave, if a hook was asked about them. */
  readonly modelArgs?: unknown;
}

/** Returns the result in an array of its own, as a turn with this call alone needs it. */
async function runToolCall(
  keyedCall: KeyedCall,
  turn: ToolTurn,
  options: ToolRunOptions,
): Promise<readonly [ToolResultPart | undefined]> {
  const { call, key } = keyedCall;
  const { tool_call_id, tool } = call;
  const loggedResult = turn.interrupted === true ? options.gate.record(key).result : undefined;
  if (loggedResult !== undefined) {
    options.gate.ended();
    return [loggedResult];
  }
  if (!options.events.skip()) emitStart(call, turn, options);
  const started = turn.suspension?.startOf(tool_call_id) ?? performance.now();
  let outcome: Outcome;
  try {
    const { hooks } = options;
    // Hooks decide only about calls that can run.
    const isCallable = options.tools.get(tool) !== undefined && call.invalid !== true;
    outcome = await (hooks === undefined || !isCallable
      ? outcomeOf(keyedCall, turn, options)
      : hookedOutcome(keyedCall, turn, { ...options, hooks }));
  } catch (error) {
    if (postpones(error, keyedCall, { turn, options, started })) return [undefined];
    outcome = thrownOutcome(error);
  }
  options.gate.ended();
  const result = toResult(call, outcome, options);
  if (!options.events.skip()) emitEnd(result, outcome, { turn, options, started });
  return [result];
}

interface StartedCall {
  readonly turn: ToolTurn;
  readonly options: ToolRunOptions;
  readonly started: number;
}

/** Whether the error postpones the call, which is then noted. */
function postpones(
  error: unknown,
  { call, key }: KeyedCall,
  { turn, options, started }: StartedCall,
): boolean {
  // The call has not run if an outage kept it from its checks or its approval.
  const isPostponed = error instanceof Postponed;
  const outage = isPostponed ? error.cause : outageOf(error);
  if (outage !== undefined) turn.postponed ??= outage;
  if (isPostponed ? error.isUnstarted : outage !== undefined) options.gate.unstarted(key);
  if (options.signal.reason instanceof Suspension) options.signal.reason.add(call.tool_call_id, started);
  return outage !== undefined || isPostponed;
}

function emitStart(
  { tool_call_id, tool, args }: ToolCallPart,
  turn: ToolTurn,
  options: ToolRunOptions,
): void {
  const definition = options.tools.get(tool);
  const mcp = definition?.servedBy?.(args);
  const kind = callerKind(definition);
  options.emit(
    { type: "tool_start", tool_call_id, tool, args, ...(mcp === undefined ? undefined : { mcp }), ...kind },
    turn.id,
  );
}

function emitEnd(result: ToolResultPart, { thrown }: Outcome, { turn, options, started }: StartedCall): void {
  const { tool_call_id, tool, is_error } = result;
  const cause = thrown === undefined ? undefined : options.causeOf?.(thrown, options.mask);
  options.emit(
    {
      type: "tool_end",
      tool_call_id,
      tool,
      result: resultText(result),
      is_error,
      ...(cause === undefined ? undefined : { cause }),
      duration_ms: Math.round(performance.now() - started),
    },
    turn.id,
  );
}

/** Runs a call, with the hooks before and after it. */
async function hookedOutcome(
  { call, key }: KeyedCall,
  turn: ToolTurn,
  options: ToolRunOptions & { readonly hooks: ToolHooks },
): Promise<Outcome> {
  const { hooks } = options;
  const hookedCall = await hooks.before(call);
  if ("refused" in hookedCall) return hookedCall.refused;
  const outcome = await outcomeOf({ call: hookedCall, key, modelArgs: call.args }, turn, options);
  try {
    return await hooks.after(hookedCall, outcome);
  } catch (error) {
    const cause = outageOf(error);
    throw cause === undefined ? error : new Postponed("There is an outage.", { cause });
  }
}

/** Runs a call, or returns a result that explains why it cannot run. Throws if the tool or its schema throws synchronously. */
function outcomeOf(
  { call, key, modelArgs = call.args }: KeyedCall,
  turn: ToolTurn,
  options: ToolRunOptions,
): Outcome | Promise<Outcome> {
  const tool = options.tools.get(call.tool);
  if (tool === undefined) return unknownTool(call, options.tools);
  if (call.invalid === true)
    return failed("The arguments are not valid JSON. Call the tool again with valid JSON.");
  const input = validateInput(tool, call.args, options);
  return input instanceof Promise
    ? runWhenChecked({ call, key, modelArgs, tool, input }, turn, options)
    : runChecked({ call, key, modelArgs, tool, input }, turn, options);
}

function unknownTool({ tool }: ToolCallPart, tools: ToolLookup): Outcome {
  const names = tools.names().join(", ");
  const unknown = builtInToolNames.has(tool)
    ? `"${tool}" is not allowed to this agent.`
    : `There is no tool named "${tool}".`;
  const why = tools.whyMissing?.(tool) ?? unknown;
  return failed(`${why} The tools are: ${names === "" ? "none" : names}.`);
}

/** A call with its tool, and its arguments as that tool's schema has checked them. */
interface CheckedCall<Input> extends Required<KeyedCall> {
  readonly tool: ToolDefinition;
  readonly input: Input;
}

async function runWhenChecked(
  call: CheckedCall<Promise<CheckedInput>>,
  turn: ToolTurn,
  options: ToolRunOptions,
): Promise<Outcome> {
  return runChecked({ ...call, input: await call.input }, turn, options);
}

function runChecked(
  { call, key, modelArgs, tool, input }: CheckedCall<CheckedInput>,
  turn: ToolTurn,
  options: ToolRunOptions,
): Outcome | Promise<Outcome> {
  if ("issues" in input)
    return failed(`The arguments are not what ${tool.name} takes: ${input.issues.join("; ")}.`);
  const context = new RunningCall(call, key, { turnId: turn.id, options, ask: asker(call, tool, options) });
  const gated = { call, tool, turnId: turn.id, input: input.value, context, modelArgs };
  const { interrupted = false } = turn;
  return passGate(options.gate, { tool, gated, interrupted, context, turn, options }, startGated);
}

/** Runs a call that may run, after its approval if it needed one. */
function startGated(
  {
    tool,
    gated,
    context,
    turn,
    options,
  }: GateRequest & {
    readonly context: RunningCall;
    readonly turn: ToolTurn;
    readonly options: ToolRunOptions;
  },
  approval?: ApprovalDecision,
): Outcome | Promise<Outcome> {
  if (kindOf(tool) === "caller") return toAnswer(approval ?? {});
  if (approval?.args !== undefined) {
    const call = { ...gated.call, args: approval.args };
    return runEdited(tool, { call, key: context.idempotencyKey, by: approval.by }, { turn, options });
  }
  context.approved = approval !== undefined;
  return runNow(tool, { input: gated.input, context }, options);
}

/** How the context of a call asks a person. */
function asker(
  call: ToolCallPart,
  tool: ToolDefinition,
  { gate, validateJson }: ToolRunOptions,
): CallParts["ask"] {
  let asked: Set<string> | undefined;
  const isIdempotent = tool.idempotent === true;
  return async (question, context) => {
    const { askPerson } = await import("../approvals/ask.ts");
    asked ??= new Set();
    return await askPerson({ gate, call, context, isIdempotent, validateJson, asked }, question);
  };
}

function runNow(
  tool: ToolDefinition,
  run: { readonly input: unknown; readonly context: RunningCall },
  options: ToolRunOptions,
): Outcome | Promise<Outcome> {
  const { begin, running, signal, tracing } = options;
  if (resumesLater(tool, signal)) throw new Postponed();
  if (signal.aborted) return { ...failed("The call was aborted before it started."), aborted: true };
  const { input, context } = run;
  const execution: Execution = { input, context, signal, running, begin };
  return tracing === undefined ? execute(tool, execution) : executeTraced(tracing, tool, execution);
}

function executeTraced(
  tracing: OperationTracing,
  tool: ToolDefinition,
  execution: Execution,
): Outcome | Promise<Outcome> {
  const { turnId: turn_id, toolCallId: tool_call_id } = execution.context;
  return tracing.within({ turn_id, tool_call_id }, () => execute(tool, execution));
}

/** Runs a call with the arguments of its approver: hooks and schema check them like the model's arguments. */
async function runEdited(
  tool: ToolDefinition,
  edited: { readonly call: ToolCallPart; readonly key: string; readonly by: string | undefined },
  { turn, options }: { readonly turn: ToolTurn; readonly options: ToolRunOptions },
): Promise<Outcome> {
  const { call, key, by } = edited;
  const hookedCall = (await options.hooks?.before(call)) ?? call;
  if ("refused" in hookedCall) return hookedCall.refused;
  if (hookedCall.args !== call.args)
    return failed("The call was not run: a hook has changed the arguments that were approved.");
  const input = await validateInput(tool, call.args, options);
  if ("issues" in input)
    return failed(
      `The call was not run: the arguments that were approved are not what ${tool.name} takes: ${input.issues.join("; ")}.`,
    );
  const context = new RunningCall(call, key, { turnId: turn.id, options, ask: asker(call, tool, options) });
  context.approved = true;
  const outcome = await runNow(tool, { input: input.value, context }, options);
  const note = `[The arguments were changed${by === undefined ? "" : ` by ${by}`} before the call was approved: ${JSON.stringify(call.args)}]`;
  const { content } = outcome;
  return {
    ...outcome,
    content: typeof content === "string" ? `${note}\n${content}` : [{ type: "text", text: note }, ...content],
  };
}

/** The idempotency key of a call, from its index in the turn: call ids come from providers and may repeat. */
export function keyOf({ callKey }: Pick<ToolTurn, "callKey">, at: number): string {
  return `${callKey}:${at}`;
}

type CheckedInput = { readonly value: unknown } | { readonly issues: readonly string[] };

function validateInput(
  tool: ToolDefinition,
  args: unknown,
  options: ToolRunOptions,
): CheckedInput | Promise<CheckedInput> {
  if (isStandardSchema(tool.input)) {
    const result = tool.input["~standard"].validate(args);
    return result instanceof Promise ? result.then(fromStandard) : fromStandard(result);
  }
  const issues = options.validateJson(tool.input, args);
  return issues instanceof Promise ? inputWhenChecked(args, issues) : inputOf(args, issues);
}

function inputOf(args: unknown, issues: readonly string[]): CheckedInput {
  return issues.length === 0 ? { value: args } : { issues };
}

function inputWhenChecked(args: unknown, issues: Promise<readonly string[]>): Promise<CheckedInput> {
  return issues.then((found) => inputOf(args, found));
}

function fromStandard(result: StandardSchemaV1.Result<unknown>): CheckedInput {
  return result.issues === undefined ? { value: result.value } : { issues: result.issues.map(issueText) };
}
