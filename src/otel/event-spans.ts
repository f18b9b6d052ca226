import {
  type Attributes,
  type Context,
  context,
  type Meter,
  metrics,
  SpanKind,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { version } from "../base/own-package.ts";
import type { KitEvent } from "../protocol/event.ts";
import type { TracePlace, Tracing, TurnContent, TurnRequest } from "../protocol/tracing.ts";
import { type AnswerCall, argumentsOf, inputAttributes, resultOf } from "./content.ts";
import {
  compactionKey,
  names,
  operationKey,
  operations,
  runKey,
  spanOf,
  stepKey,
  taskKey,
  toolKey,
  turnKey,
} from "./conventions.ts";
import { WorkMetrics } from "./metrics.ts";
import {
  type AttributeOptions,
  commonAttributes,
  cutDescription,
  cutName,
  type SpanOf,
  toolAttributes,
  usageAttributes,
} from "./span-attributes.ts";
import { SpanTree } from "./span-tree.ts";
import { activeTrace, toContext, toHeaders } from "./trace-ids.ts";
import { TurnSpans } from "./turn-spans.ts";

type EventOf<Type extends KitEvent["type"]> = Extract<KitEvent, { readonly type: Type }>;

export interface OpenTelemetryOptions {
  /** Default: `trace.getTracer("kit")`, of the SDK that the program has set up. */
  readonly tracer?: Tracer;
  /** Default: `metrics.getMeter("kit")`; false for none. */
  readonly meter?: Meter | false;
  /**
   * Adds the prompts and answers of models, and the arguments and results of tools, to spans. Default false: they may be
   * private. Known keys are masked, as in events.
   */
  readonly captureContent?: boolean;
  /** Attributes for every span. */
  readonly attributes?: Attributes;
  /** Adds `openinference.span.kind` and the other attributes that Phoenix before 15.10 and Arize read; default false. */
  readonly openInference?: boolean;
}

/** Creates spans and metrics while events arrive. */
export class EventSpans implements Tracing {
  readonly capturesContent: boolean;
  readonly #tree: SpanTree;
  readonly #metrics: WorkMetrics | undefined;
  readonly #attributes: AttributeOptions;
  readonly #turns: TurnSpans;

  constructor({
    tracer,
    meter,
    captureContent = false,
    attributes = {},
    openInference = false,
  }: OpenTelemetryOptions) {
    this.capturesContent = captureContent;
    this.#tree = new SpanTree(tracer ?? trace.getTracer("kit", version));
    this.#metrics = meter === false ? undefined : new WorkMetrics(meter ?? metrics.getMeter("kit", version));
    this.#attributes = { attributes, openInference };
    const { capturesContent } = this;
    this.#turns = new TurnSpans({
      tree: this.#tree,
      metrics: this.#metrics,
      attributes: this.#attributes,
      capturesContent,
    });
  }

  get open(): number {
    return this.#tree.size;
  }

  receive(event: KitEvent): void {
    switch (event.type) {
      case "run_start":
        this.#startRun(event);
        break;
      case "run_end":
        this.#endRun(event);
        break;
      case "step_start":
        this.#startStep(event);
        break;
      case "step_end":
        this.#tree.end(stepKey(event), event, { error: errorOf(event) });
        break;
      case "operation_start":
        this.#startOperation(event);
        break;
      case "operation":
        this.#endOperation(event);
        break;
      case "turn_request":
        this.#turns.start(event);
        break;
      case "turn":
        this.#turns.end(event);
        break;
      case "turn_end":
        this.#turns.endFailed(event);
        break;
      case "error":
        this.#fail(event);
        break;
      case "text_delta":
      case "reasoning_delta":
        if (this.capturesContent) this.#turns.add(event);
        break;
      case "tool_start":
        this.#startTool(event);
        break;
      case "tool_end":
        this.#endTool(event);
        break;
      case "approval_request":
      case "approval":
        this.#noteApproval(event);
        break;
      case "task_start":
        this.#startTask(event);
        break;
      case "task_end":
        this.#tree.end(taskKey(event), event, { error: errorOf(event) });
        break;
      case "compaction_start":
        this.#startCompaction(event);
        break;
      case "compaction_end":
        this.#tree.end(compactionKey(event), event, {
          attributes: { "kit.compaction.tokens_after": event.tokens_after },
          error: errorOf(event),
        });
        break;
      case "agent_start":
      case "idle":
      case "abort_requested":
      case "aborted":
      case "joined":
      case "command_start":
      case "command_end":
      case "tool_progress":
      case "tool_args_delta":
      case "source":
      case "file":
      case "log":
      case "gap":
        break;
      default:
        event satisfies never;
    }
  }

  close(): void {
    this.#turns.clear();
    for (const [key] of this.#tree.entries()) this.#tree.forget(key);
  }

  active(): ReturnType<Tracing["active"]> {
    return activeTrace();
  }

  of(place: TracePlace): ReturnType<Tracing["of"]> {
    const found = this.#contextAt(place);
    return found === undefined ? undefined : toHeaders(trace.getSpanContext(found));
  }

  within<Value>(place: TracePlace, work: () => Value): Value {
    const found = this.#contextAt(place);
    return found === undefined ? work() : context.with(found, work);
  }

  content(place: TracePlace, content: TurnContent): void {
    if (!this.capturesContent) return;
    const span = this.#tree.get(turnKey(place))?.span;
    if (span?.isRecording()) span.setAttributes(inputAttributes(content, this.#attributes.openInference));
  }

  request(place: TracePlace, request: TurnRequest): void {
    this.#turns.addRequest(place, request);
  }

  calls(place: TracePlace, calls: readonly AnswerCall[]): void {
    this.#turns.addCalls(turnKey(place), calls);
  }

  recall(events: readonly KitEvent[]): void {
    const open = new Map<string, KitEvent>();
    for (const event of events) {
      const [key, isStart] = spanOf(event) ?? [];
      if (key === undefined) continue;
      // A second start of an operation resumes it after an interruption: the newer span continues.
      if (isStart) open.set(key, event);
      else open.delete(key);
    }
    for (const [key, event] of open) if (this.#tree.get(key) === undefined) this.receive(event);
  }

  #contextAt(place: TracePlace): Context | undefined {
    return this.#tree.contextOf(
      place.tool_call_id === undefined ? undefined : toolKey(place, place.tool_call_id),
      place.turn_id === undefined ? undefined : turnKey(place),
      operationKey(place),
      place.step_id === undefined ? undefined : stepKey({ ...place, step: "", step_id: place.step_id }),
      place.run_id === undefined ? undefined : runKey(place.run_id),
    );
  }

  #common(of: SpanOf, event: KitEvent): Attributes {
    return commonAttributes(of, event, this.#attributes);
  }

  #startRun(event: EventOf<"run_start">): void {
    const key = runKey(event.run_id);
    if (this.#tree.get(key) !== undefined) return;
    this.#tree.start(event, {
      key,
      isOnce: true,
      name: `${operations.workflow} ${event.workflow}`,
      kind: SpanKind.INTERNAL,
      parent: toContext(event),
      attributes: {
        ...this.#common("workflow", event),
        [names.operation]: operations.workflow,
        [names.workflow]: event.workflow,
      },
    });
  }

  #endRun(event: EventOf<"run_end">): void {
    const error = errorOf(event);
    const attributes = event.reason === undefined ? {} : { "kit.run.reason": event.reason };
    this.#tree.end(runKey(event.run_id), event, { attributes, error });
    this.#metrics?.workflow(event, error);
  }

  #startStep(event: EventOf<"step_start">): void {
    const run = runKey(event.run_id);
    this.#tree.end(stepKey(event), event, { error: "interrupted" });
    this.#tree.start(event, {
      key: stepKey(event),
      name: `kit.step ${cutName(event.step)}`,
      kind: SpanKind.INTERNAL,
      parent: this.#tree.contextOf(run) ?? toContext({}),
      within: run,
      attempt: event.attempt,
      attributes: {
        ...this.#common("step", event),
        "kit.step.name": cutName(event.step),
        ...(event.attempt === undefined ? {} : { "kit.step.attempt": event.attempt }),
      },
    });
  }

  #startOperation(event: EventOf<"operation_start">): void {
    const key = operationKey(event);
    // A killed process did not end its span; a suspended operation has no second start.
    this.#tree.end(key, event, { error: "interrupted" });
    const task = event.task_id === undefined ? undefined : taskKey({ ...event, task_id: event.task_id });
    const step = event.step_id === undefined ? undefined : stepKey({ ...event, step: event.step ?? "" });
    const run = event.run_id === undefined ? undefined : runKey(event.run_id);
    const isGiven = event.traceparent !== undefined;
    const parent = isGiven ? toContext(event) : this.#tree.contextOf(task, step, run);
    this.#tree.start(event, {
      key,
      name: `${operations.agent} ${event.agent}`,
      kind: SpanKind.INTERNAL,
      parent: parent ?? toContext({}),
      within: task ?? step ?? run,
      attributes: {
        ...this.#common("operation", event),
        [names.operation]: operations.agent,
        "kit.operation.kind": event.operation_kind,
        ...(event.resumed === true ? { "kit.resumed": true } : {}),
      },
    });
  }

  #endOperation(event: EventOf<"operation">): void {
    const attributes = event.usage === undefined ? {} : usageAttributes(event.usage, this.#attributes);
    const key = operationKey(event);
    const error = event.is_aborted
      ? "aborted"
      : event.is_error
        ? (this.#tree.get(key)?.failure ?? "error")
        : undefined;
    const open = this.#tree.get(key);
    // A retry that worked is not a failure of the operation.
    if (open !== undefined && error === undefined) open.failure = undefined;
    this.#tree.end(key, event, { attributes, error });
    this.#metrics?.operation(event, error);
  }

  #fail(event: EventOf<"error">): void {
    const { type, cause } = event.error;
    const operation = this.#tree.get(operationKey(event));
    if (operation !== undefined) operation.failure = type;
    if (event.turn_id === undefined) return;
    // The conventions ask for the provider's code where a provider has refused the call.
    this.#turns.note(event, cause?.status === undefined ? type : String(cause.status));
  }

  #startTool(event: EventOf<"tool_start">): void {
    const operation = operationKey(event);
    const key = toolKey(event, event.tool_call_id);
    this.#tree.end(key, event, { error: "interrupted" });
    const about = this.#tree.get(operation)?.tools?.find(({ name }) => name === event.tool)?.description;
    const labelled = { ...event, tool: cutName(event.tool) };
    this.#tree.start(event, {
      key,
      name: `${operations.tool} ${labelled.tool}`,
      kind: event.mcp === undefined ? SpanKind.INTERNAL : SpanKind.CLIENT,
      parent: this.#tree.contextOf(operation) ?? toContext({}),
      within: operation,
      attributes: {
        ...this.#common("tool", event),
        ...toolAttributes(labelled),
        ...(about === undefined ? {} : { [names.toolDescription]: cutDescription(about) }),
        ...(this.capturesContent ? argumentsOf(event.args, this.#attributes.openInference) : {}),
      },
    });
  }

  #endTool(event: EventOf<"tool_end">): void {
    const error = event.is_error ? "tool_error" : undefined;
    const attributes = this.capturesContent ? resultOf(event.result, this.#attributes.openInference) : {};
    this.#tree.end(toolKey(event, event.tool_call_id), event, { attributes, error });
    this.#metrics?.tool({ ...event, tool: cutName(event.tool) }, error);
  }

  #noteApproval(event: EventOf<"approval_request"> | EventOf<"approval">): void {
    const open = this.#tree.get(toolKey(event, event.tool_call_id));
    if (open === undefined) return;
    const at = Math.max(open.startedMs, Date.parse(event.timestamp));
    const id = { "kit.approval_id": event.approval_id };
    if (event.type === "approval_request") open.span.addEvent("kit.approval.request", id, at);
    else open.span.addEvent("kit.approval", { ...id, "kit.approval.approved": event.approved }, at);
  }

  #startTask(event: EventOf<"task_start">): void {
    const key = taskKey(event);
    const operation = operationKey(event);
    const call = event.tool_call_id === undefined ? undefined : toolKey(event, event.tool_call_id);
    this.#tree.end(key, event, { error: "interrupted" });
    this.#tree.start(event, {
      key,
      name: "kit.task",
      kind: SpanKind.INTERNAL,
      parent: this.#tree.contextOf(call, operation) ?? toContext({}),
      within: operation,
      attributes: {
        ...this.#common("task", event),
        ...(event.role === undefined ? {} : { "kit.task.role": event.role }),
        ...(event.task_agent === undefined ? {} : { "kit.task.agent": event.task_agent }),
      },
    });
  }

  #startCompaction(event: EventOf<"compaction_start">): void {
    const operation = operationKey(event);
    this.#tree.end(compactionKey(event), event, { error: "interrupted" });
    this.#tree.start(event, {
      key: compactionKey(event),
      name: "kit.compaction",
      kind: SpanKind.INTERNAL,
      parent: this.#tree.contextOf(operation) ?? toContext({}),
      within: operation,
      attributes: {
        ...this.#common("compaction", event),
        "kit.compaction.reason": event.reason,
        "kit.compaction.tokens_before": event.tokens_before,
      },
    });
  }
}

/** The error of work that can be aborted. */
function errorOf(event: {
  readonly is_error: boolean;
  readonly is_aborted?: true | undefined;
  readonly error?: { readonly type: string } | undefined;
}): string | undefined {
  if (!event.is_error) return undefined;
  return event.is_aborted ? "aborted" : (event.error?.type ?? "error");
}
