import { SpanKind } from "@opentelemetry/api";
import type { KitEvent } from "../protocol/event.ts";
import type { TracePlace, TurnRequest } from "../protocol/tracing.ts";
import { Answer, type AnswerCall, toolDefinitions } from "./content.ts";
import { compactionKey, modelOf, names, operationKey, operations, turnKey } from "./conventions.ts";
import { inferenceAttributes, type WorkMetrics } from "./metrics.ts";
import {
  type AttributeOptions,
  answerAttributes,
  cutDescription,
  turnAttributes,
} from "./span-attributes.ts";
import type { SpanTree } from "./span-tree.ts";
import { toContext } from "./trace-ids.ts";

type EventOf<Type extends KitEvent["type"]> = Extract<KitEvent, { readonly type: Type }>;

export interface TurnSpansOptions {
  readonly tree: SpanTree;
  readonly metrics: WorkMetrics | undefined;
  readonly attributes: AttributeOptions;
  readonly capturesContent: boolean;
}

/** The spans of model calls, one for each attempt. */
export class TurnSpans {
  readonly #tree: SpanTree;
  readonly #metrics: WorkMetrics | undefined;
  readonly #attributes: AttributeOptions;
  readonly #answers: Map<string, Answer> | undefined;

  constructor({ tree, metrics, attributes, capturesContent }: TurnSpansOptions) {
    this.#tree = tree;
    this.#metrics = metrics;
    this.#attributes = attributes;
    this.#answers = capturesContent ? new Map() : undefined;
  }

  clear(): void {
    this.#answers?.clear();
  }

  add(event: EventOf<"text_delta"> | EventOf<"reasoning_delta">): void {
    this.#answers?.get(turnKey(event))?.add(event.type, event.text);
  }

  /** Adds what a request has besides its event: the provider's address, and the agent's and the tools' descriptions. */
  addRequest(place: TracePlace, { server, tools, description }: TurnRequest): void {
    const operation = this.#tree.get(operationKey(place));
    if (operation !== undefined) {
      operation.tools = tools;
      if (description !== "")
        operation.span.setAttribute(names.agentDescription, cutDescription(description));
    }
    const span = this.#tree.get(turnKey(place))?.span;
    if (!span?.isRecording()) return;
    if (server !== undefined)
      span.setAttributes({ [names.serverAddress]: server.address, [names.serverPort]: server.port });
    if (this.#answers !== undefined) span.setAttributes(toolDefinitions(tools));
  }

  /** Notes the calls that the answer of a turn asks for. */
  addCalls(turn: string, calls: readonly AnswerCall[]): void {
    const answer = this.#answers?.get(turn);
    if (answer !== undefined) answer.calls = calls;
  }

  /** Notes a failed attempt; the next attempt gets a new span. */
  note(event: EventOf<"error">, type: string): void {
    const turn = this.#tree.get(turnKey(event));
    if (turn !== undefined) turn.failure = type;
    if (event.will_retry) this.#failTurn(event, type);
  }

  start(event: EventOf<"turn_request">): void {
    const key = turnKey(event);
    const operation = operationKey(event);
    const compaction = event.purpose === "compaction" ? compactionKey(event) : undefined;
    this.#tree.end(key, event, { error: "interrupted" });
    this.#tree.start(event, {
      key,
      name: `${operations.chat} ${modelOf(event.model)}`,
      kind: SpanKind.CLIENT,
      parent: this.#tree.contextOf(compaction, operation) ?? toContext({}),
      within: operation,
      attempt: event.attempt,
      attributes: turnAttributes(event, this.#attributes),
    });
    this.#answers?.set(key, new Answer());
  }

  /** Ends the span of a turn. A failed turn keeps its error: the event with its partial answer follows the error. */
  end(event: EventOf<"turn">): void {
    const key = turnKey(event);
    const open = this.#tree.get(key);
    const error = event.finish_reason === "aborted" ? "aborted" : open?.failure;
    const answer = this.#takeAnswer(key)?.toAttributes(event.finish_reason, this.#attributes.openInference);
    const attributes = answerAttributes(event, this.#attributes);
    if (answer !== undefined) Object.assign(attributes, answer);
    this.#tree.end(key, event, { attributes, error });
    if (open === undefined) return;
    const of = inferenceAttributes(open.attributes);
    this.#metrics?.inference(of, event.duration_ms / 1_000, error);
    this.#metrics?.answer(of, event);
  }

  endFailed(event: EventOf<"turn_end">): void {
    if (event.is_error !== true) return;
    this.#failTurn(event, event.is_aborted ? "aborted" : "error");
  }

  #failTurn(event: KitEvent, otherwise: string): void {
    const key = turnKey(event);
    const open = this.#tree.get(key);
    if (open === undefined) return;
    const error = open.failure ?? otherwise;
    const attributes = this.#takeAnswer(key)?.toAttributes(undefined, this.#attributes.openInference);
    this.#tree.end(key, event, { error, attributes });
    const seconds = (Date.parse(event.timestamp) - open.startedMs) / 1_000;
    this.#metrics?.inference(inferenceAttributes(open.attributes), seconds, error);
  }

  #takeAnswer(key: string): Answer | undefined {
    const answer = this.#answers?.get(key);
    this.#answers?.delete(key);
    return answer;
  }
}
