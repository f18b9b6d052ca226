import { KitError } from "../../base/kit-error.ts";
import type { EventBody } from "../../protocol/event.ts";
import type { ToolCallPart } from "../../protocol/message.ts";
import type { RunHandle, StartRun, StartRunOptions } from "../../protocol/run-calls.ts";
import type { TraceContext } from "../../protocol/trace-context.ts";
import type { ToolContext, ToolPlace, ToolReturn } from "../define/tool.ts";
import type { OperationTracing } from "../events.ts";
import { maskValue, type SecretMask } from "../secrets.ts";

/** The session and application around a tool call. */
export type CallPlace = Omit<ToolPlace, "progress">;

/** The parts of an operation that its tool calls use. */
export interface CallSurroundings {
  readonly operationId: string;
  readonly emit: (body: EventBody, turnId: string) => void;
  readonly mask?: SecretMask;
  readonly tracing?: OperationTracing | undefined;
  /** Where the call is made; undefined for an agent without an application. */
  readonly place?: CallPlace | undefined;
}

/** The context of a running call. The signal is created on first use: most tools end before they need one. */
export class RunningCall implements ToolContext {
  readonly #call: ToolCallPart;
  readonly #options: CallSurroundings;
  #asked = 0;
  readonly toolCallId: string;
  readonly turnId: string;
  readonly operationId: string;
  readonly idempotencyKey: string;
  approved = false;
  #controller: AbortController | undefined;
  #stopped: { readonly reason: unknown } | undefined;

  constructor(
    call: ToolCallPart,
    key: string,
    of: { readonly turnId: string; readonly options: CallSurroundings },
  ) {
    this.#call = call;
    this.#options = of.options;
    this.toolCallId = call.tool_call_id;
    this.turnId = of.turnId;
    this.operationId = of.options.operationId;
    this.idempotencyKey = key;
    this.dispatch = (agent, input) =>
      this.#place().dispatch(agent, { ...input, idempotencyKey: input.idempotencyKey ?? this.#nextKey() });
    this.startRun = (async (
      workflow: string,
      payload: Record<string, unknown>,
      { idempotencyKey = this.#nextKey() }: StartRunOptions = {},
    ) => this.#whileCalled(await this.#place().startRun(workflow, payload, { idempotencyKey }))) as StartRun;
    this.getRun = (runId) => this.#whileCalled(this.#place().getRun(runId));
    this.progress = (value) => this.#progress(value);
  }

  // Fields, so that a tool can take them out of its context: `({ text }, { progress }) => …`.
  readonly dispatch: ToolPlace["dispatch"];
  readonly startRun: StartRun;
  readonly getRun: ToolPlace["getRun"];
  readonly progress: ToolPlace["progress"];

  // The names of the first versions.
  get tool_call_id(): string {
    return this.toolCallId;
  }

  get turn_id(): string {
    return this.turnId;
  }

  get operation_id(): string {
    return this.operationId;
  }

  get idempotency_key(): string {
    return this.idempotencyKey;
  }

  get agent(): string {
    return this.#place().agent;
  }

  get instance(): string {
    return this.#place().instance;
  }

  get session(): string {
    return this.#place().session;
  }

  get principal(): string | undefined {
    return this.#place().principal;
  }

  get runId(): string | undefined {
    return this.#place().runId;
  }

  get env(): ToolPlace["env"] {
    return this.#place().env;
  }

  #place(): CallPlace {
    const { place } = this.#options;
    if (place !== undefined) return place;
    throw new KitError({ code: "unavailable", message: "This call has no application around it." });
  }

  /** A call that is stopped no longer waits for the run. */
  #whileCalled(run: RunHandle): RunHandle {
    return {
      ...run,
      result: ({ signal } = {}) =>
        run.result({ signal: signal === undefined ? this.signal : AbortSignal.any([this.signal, signal]) }),
    };
  }

  #nextKey(): string {
    this.#asked += 1;
    return `${this.idempotencyKey}:${this.#asked}`;
  }

  #progress(value: unknown): void {
    const { emit, mask } = this.#options;
    // A call that has ended emits no progress: readers already have its `tool_end`.
    if (this.#stopped !== undefined) return;
    const progress = progressOf(value, mask);
    const { tool_call_id, tool } = this.#call;
    emit({ type: "tool_progress", tool_call_id, tool, progress }, this.turnId);
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#stopped !== undefined) this.#controller.abort(this.#stopped.reason);
    }
    return this.#controller.signal;
  }

  get trace(): TraceContext | undefined {
    return this.#options.tracing?.headers({ turn_id: this.turnId, tool_call_id: this.toolCallId });
  }

  get isStopped(): boolean {
    return this.#stopped !== undefined;
  }

  stop(reason: unknown): void {
    this.#stopped = { reason };
    this.#controller?.abort(reason);
  }
}

const maxProgressChars = 10_000;

/** The progress of a tool as JSON, cut to the size limit of events. */
function progressOf(value: unknown, mask: SecretMask | undefined): unknown {
  // Masked before it is cut: half a secret is not recognized.
  const clean = <Value>(given: Value): Value => (mask === undefined ? given : maskValue(given, mask));
  try {
    const text = JSON.stringify(clean(JSON.parse(JSON.stringify(value) ?? "null")));
    return text.length <= maxProgressChars
      ? JSON.parse(text)
      : `${text.slice(0, maxProgressChars).toWellFormed()}…`;
  } catch {
    return clean(String(value)).slice(0, maxProgressChars).toWellFormed();
  }
}

export function isGenerator(given: unknown): given is AsyncGenerator<unknown, ToolReturn> {
  return typeof given === "object" && given !== null && Symbol.asyncIterator in given && "next" in given;
}

/** Reads a generator to its end; one that was stopped is closed where it stands. */
export async function readProgress(
  values: AsyncGenerator<unknown, ToolReturn>,
  context: RunningCall,
): Promise<ToolReturn> {
  let last: unknown;
  for (;;) {
    const { done, value } = await values.next();
    if (done === true) return value === undefined ? (last as ToolReturn) : value;
    last = value;
    context.progress(value);
    if (!context.isStopped) continue;
    await values.return(undefined);
    return undefined;
  }
}
