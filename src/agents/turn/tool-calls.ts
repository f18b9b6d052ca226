import { longestTimerMs } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import { isStandardSchema, issueText, type StandardResult } from "../../base/standard-schema.ts";
import { type ErrorCause, messagesOf, thrownText } from "../../protocol/error-cause.ts";
import type { EventBody } from "../../protocol/event.ts";
import type { ToolCallPart, ToolResultPart } from "../../protocol/message.ts";
import { isStoreUnavailable } from "../../protocol/store-fault.ts";
import type { TraceContext } from "../../protocol/trace-context.ts";
import type { ToolContext, ToolDefinition, ToolLookup, ToolOutput, ValidateJson } from "../define/tool.ts";
import type { OperationTracing } from "../events.ts";
import { isPutOff, isRest, PutOff, type Rested } from "../log/suspension.ts";
import type { SecretMask } from "../secrets.ts";
import { builtInToolNames } from "../tools/built-in-tools.ts";
import { passGate, type ToolGate } from "./tool-gate.ts";
import { failed, type Outcome, resultText, toOutcome, toResult } from "./tool-result.ts";

/** What the tool calls of one operation share. */
export interface ToolRunOptions {
  readonly tools: ToolLookup;
  readonly operationId: string;
  readonly signal: AbortSignal;
  readonly emit: (body: EventBody, turnId: string) => void;
  readonly validateJson: ValidateJson;
  /** What stands before every call. */
  readonly gate: ToolGate;
  /** Told that a tool runs; gives what to call at its end. */
  readonly begin?: ((tool: string) => (() => void) | undefined) | undefined;
  /** Takes secrets out of every text of a result, before it is cut to its length. */
  readonly mask?: SecretMask;
  /** The spans that calls hand on; undefined where nothing is traced. */
  readonly tracing?: OperationTracing | undefined;
  /** Why a tool failed, as its event tells it. */
  readonly causeOf?: (error: unknown, mask?: (text: string) => string) => ErrorCause | undefined;
}

/** The turn that asks for calls. */
export interface ToolTurn {
  readonly id: string;
  /** Names these calls in the log of their session; with the place of a call, its idempotency key. */
  readonly callKey: string;
  /** The process ended while these calls ran: what may not run twice is not run again. */
  readonly interrupted?: boolean;
  /** It rested while these calls waited. */
  readonly rested?: Rested | undefined;
  /** Told why a call is put off, where something else than the signal says so. */
  readonly onPutOff?: (cause: unknown) => void;
}

const defaultToolTimeoutMs = 120_000;

/**
 * Runs the calls of one turn and gives a result for each, in their order, whatever happens.
 *
 * Calls run side by side, unless one of them is `exclusive`. Nothing a tool does throws from here: bad
 * arguments, failures, time-outs and aborts are results that the model reads. Undefined for a call that
 * goes on when its operation does, which is put off.
 */
export async function runToolCalls(
  calls: readonly ToolCallPart[],
  turn: ToolTurn,
  options: ToolRunOptions,
): Promise<readonly (ToolResultPart | undefined)[]> {
  const keyed = calls.map((call, at) => ({ call, key: keyOf(turn, at) }));
  options.gate.begin(calls.length);
  if (calls.length > 1 && !calls.some((call) => options.tools.get(call.tool)?.exclusive === true))
    return Promise.all(keyed.map((call) => runToolCall(call, turn, options)));
  const results: (ToolResultPart | undefined)[] = [];
  for (const call of keyed) results.push(await runToolCall(call, turn, options));
  return results;
}

interface KeyedCall {
  readonly call: ToolCallPart;
  readonly key: string;
}

async function runToolCall(
  keyed: KeyedCall,
  turn: ToolTurn,
  options: ToolRunOptions,
): Promise<ToolResultPart | undefined> {
  const { call, key } = keyed;
  const { tool_call_id, tool, args } = call;
  const kept = turn.interrupted === true ? options.gate.record(key).result : undefined;
  if (kept !== undefined) {
    options.gate.ended();
    return kept;
  }
  const mcp = options.tools.get(tool)?.servedBy?.(args);
  options.emit(
    { type: "tool_start", tool_call_id, tool, args, ...(mcp === undefined ? undefined : { mcp }) },
    turn.id,
  );
  const started = turn.rested?.startOf(tool_call_id) ?? performance.now();
  let outcome: Outcome;
  try {
    outcome = await outcomeOf(keyed, turn, options);
  } catch (error) {
    // Nothing has run where the store of its approval was away.
    const isAway = isStoreUnavailable(error);
    if (isAway || (error instanceof PutOff && error.cause !== undefined))
      turn.onPutOff?.(isAway ? error : error.cause);
    if (isRest(options.signal)) options.signal.reason.add(tool_call_id, started);
    if (isAway || error instanceof PutOff) return undefined;
    outcome = threw(error);
  }
  options.gate.ended();
  const result = toResult(call, outcome, options);
  const cause = outcome.thrown === undefined ? undefined : options.causeOf?.(outcome.thrown, options.mask);
  options.emit(
    {
      type: "tool_end",
      tool_call_id,
      tool,
      result: resultText(result),
      is_error: result.is_error,
      ...(cause === undefined ? undefined : { cause }),
      duration_ms: Math.round(performance.now() - started),
    },
    turn.id,
  );
  return result;
}

/** Runs a call, or says why not. Throws what the tool or its schema throws before it has begun to wait. */
function outcomeOf(
  { call, key }: KeyedCall,
  turn: ToolTurn,
  options: ToolRunOptions,
): Outcome | Promise<Outcome> {
  const tool = options.tools.get(call.tool);
  if (tool === undefined) {
    const names = options.tools.names().join(", ");
    const unknown = builtInToolNames.has(call.tool)
      ? `"${call.tool}" is not allowed to this agent.`
      : `There is no tool named "${call.tool}".`;
    const why = options.tools.whyMissing?.(call.tool) ?? unknown;
    return failed(`${why} The tools are: ${names === "" ? "none" : names}.`);
  }
  if (call.invalid === true)
    return failed("The arguments are not valid JSON. Call the tool again with valid JSON.");
  const run = (input: CheckedInput): Outcome | Promise<Outcome> => {
    if ("issues" in input)
      return failed(`The arguments are not what ${tool.name} takes: ${input.issues.join("; ")}.`);
    const { signal, gate, tracing } = options;
    const context = new RunningCall(call.tool_call_id, key, {
      operationId: options.operationId,
      turnId: turn.id,
      tracing,
    });
    const start = (isApproved: boolean): Outcome | Promise<Outcome> => {
      context.approved = isApproved;
      if (goesOnLater(tool, signal)) throw new PutOff();
      if (signal.aborted) return failed("The call was aborted before it started.");
      const ended = options.begin?.(tool.name);
      const work = (): Outcome | Promise<Outcome> =>
        execute(tool, { input: input.value, context, signal, ended });
      return tracing === undefined ? work() : tracing.within(context, work);
    };
    const gated = { call, turnId: turn.id, input: input.value, context };
    return passGate(gate, { tool, gated, interrupted: turn.interrupted === true }, start);
  };
  const input = validateInput(tool, call.args, options);
  return input instanceof Promise ? input.then(run) : run(input);
}

/** The idempotency key of a call by its place in the turn: ids of calls come from providers, and may repeat. */
export function keyOf({ callKey }: Pick<ToolTurn, "callKey">, at: number): string {
  return `${callKey}:${at}`;
}

/** What a tool is told. Its signal is made when it is asked for: most tools end before they need one. */
class RunningCall implements ToolContext {
  readonly tool_call_id: string;
  readonly turn_id: string;
  readonly operation_id: string;
  readonly idempotency_key: string;
  approved = false;
  readonly #tracing: OperationTracing | undefined;
  #controller: AbortController | undefined;
  #stopped: { readonly reason: unknown } | undefined;

  constructor(
    toolCallId: string,
    key: string,
    of: {
      readonly operationId: string;
      readonly turnId: string;
      readonly tracing: OperationTracing | undefined;
    },
  ) {
    this.tool_call_id = toolCallId;
    this.turn_id = of.turnId;
    this.operation_id = of.operationId;
    this.#tracing = of.tracing;
    this.idempotency_key = key;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#stopped !== undefined) this.#controller.abort(this.#stopped.reason);
    }
    return this.#controller.signal;
  }

  get trace(): TraceContext | undefined {
    return this.#tracing?.headers(this);
  }

  stop(reason: unknown): void {
    this.#stopped = { reason };
    this.#controller?.abort(reason);
  }
}

/**
 * Runs a tool until it ends, is aborted or has used up its time. One that honours its signal ends by
 * itself; one that does not is left behind, so that an abort or a time limit holds whatever it does.
 */
function execute(
  tool: ToolDefinition,
  run: {
    readonly input: unknown;
    readonly context: RunningCall;
    readonly signal: AbortSignal;
    /** Called when the tool is done, however long after its time. */
    readonly ended: (() => void) | undefined;
  },
): Outcome | Promise<Outcome> {
  const { context, signal, ended } = run;
  const timeoutMs = Math.min(tool.timeoutMs ?? defaultToolTimeoutMs, longestTimerMs);
  let work: ReturnType<typeof tool.execute>;
  try {
    work = tool.execute(run.input, context);
  } catch (error) {
    ended?.();
    return threw(error);
  }
  if (!isPromise(work)) {
    ended?.();
    return toOutcome(work);
  }
  if (ended !== undefined) work.then(ended, ended);
  return new Promise((resolve, reject) => {
    const rest = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    };
    const end = (outcome: Outcome): void => {
      rest();
      resolve(outcome);
    };
    const stop = (reason: unknown, said: string): void => {
      end({ ...failed(`${said} What it had done by then is unknown.`), outcome: "unknown" });
      context.stop(reason);
    };
    const onAbort = (): void => {
      if (!goesOnLater(tool, signal)) {
        stop(signal.reason, "The call was aborted.");
        return;
      }
      rest();
      reject(new PutOff());
      context.stop(signal.reason);
    };
    const timer = setTimeout(() => {
      const said = `The tool did not finish within ${timeoutMs / 1000} seconds and was stopped.`;
      stop(new Error(said), said);
    }, timeoutMs);
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(
      (output) => end(settledOutcome(output)),
      (error: unknown) => {
        // What kit itself stores the work of, a task for instance, is gone on with when its store is back.
        if (tool.idempotent !== true || !isStoreUnavailable(error)) return end(threw(error));
        rest();
        reject(new PutOff("The store is away.", { cause: error }));
      },
    );
    // The tool may have fired the abort itself, before anybody listened.
    if (signal.aborted) onAbort();
  });
}

/** What may run again need not be closed when its operation is put off: a task, for instance, goes on then. */
function goesOnLater(tool: ToolDefinition, signal: AbortSignal): boolean {
  return tool.idempotent === true && isPutOff(signal);
}

function settledOutcome(output: ToolOutput): Outcome {
  try {
    return toOutcome(output);
  } catch (error) {
    return threw(error);
  }
}

function isPromise(work: ToolOutput | Promise<ToolOutput>): work is Promise<ToolOutput> {
  return typeof work === "object" && work !== null && "then" in work && typeof work.then === "function";
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
  const toInput = (issues: readonly string[]): CheckedInput =>
    issues.length === 0 ? { value: args } : { issues };
  const issues = options.validateJson(tool.input, args);
  return issues instanceof Promise ? issues.then(toInput) : toInput(issues);
}

function fromStandard(result: StandardResult<unknown>): CheckedInput {
  return result.issues === undefined ? { value: result.value } : { issues: result.issues.map(issueText) };
}

function threw(error: unknown): Outcome {
  return { ...failed(errorText(error)), thrown: error };
}

function errorText(error: unknown): string {
  if (error instanceof KitError)
    return error.hint === undefined ? error.message : `${error.message} ${error.hint}`;
  const [, ...causes] = messagesOf(error);
  return [thrownText(error), ...causes].join("; caused by: ");
}
