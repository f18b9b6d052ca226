import type { Attributes } from "@opentelemetry/api";
import { defined } from "../base/record.ts";
import type { KitEvent } from "../protocol/event.ts";
import type { Usage } from "../protocol/message.ts";
import type { TurnReceipt } from "../protocol/receipt.ts";
import { finishReasonOf, modelOf, names, operations, others, providerOf } from "./conventions.ts";

type EventOf<Type extends KitEvent["type"]> = Extract<KitEvent, { readonly type: Type }>;

/** The kinds of spans, in the words of kit's requirements. */
export type SpanOf = "workflow" | "operation" | "generation" | "tool" | "task" | "compaction" | "step";

const openInferenceKinds: Readonly<Record<SpanOf, string>> = {
  workflow: "CHAIN",
  operation: "AGENT",
  generation: "LLM",
  tool: "TOOL",
  task: "CHAIN",
  compaction: "CHAIN",
  step: "CHAIN",
};

/** Models choose the names of tools in calls, and may choose long ones. */
const maxNameChars = 128;
const maxDescriptionChars = 1_024;

export function cutName(name: string): string {
  return cut(name, maxNameChars);
}

export function cutDescription(description: string): string {
  return cut(description, maxDescriptionChars);
}

function cut(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars).toWellFormed()}…`;
}

export interface AttributeOptions {
  /** On every span. */
  readonly attributes: Attributes;
  readonly openInference: boolean;
}

/** Attributes of every span: its kind, agent, instance and session. */
export function commonAttributes(of: SpanOf, event: KitEvent, options: AttributeOptions): Attributes {
  const { agent, instance_id, session, run_id, task_id } = event;
  const attributes: Attributes = { ...options.attributes, "kit.kind": `kit.${of}` };
  if (options.openInference) attributes[others.kind] = openInferenceKinds[of];
  if (agent !== undefined) {
    attributes[names.agent] = agent;
    attributes[names.agentId] = `${agent}/${instance_id}`;
    attributes["kit.operation_id"] = event.operation_id;
    if (session !== undefined) {
      attributes[names.conversation] = `${agent}/${instance_id}/${session}`;
      attributes[others.session] = attributes[names.conversation];
    }
  }
  if (run_id !== undefined) attributes["kit.run_id"] = run_id;
  if (task_id !== undefined) attributes["kit.task_id"] = task_id;
  return attributes;
}

export function turnAttributes(event: EventOf<"turn_request">, options: AttributeOptions): Attributes {
  const provider = providerOf(event.provider, event.model);
  const model = modelOf(event.model);
  const attributes = commonAttributes("generation", event, options);
  attributes[names.operation] = operations.chat;
  attributes[names.provider] = provider;
  attributes[names.requestModel] = model;
  attributes[names.requestStream] = true;
  attributes["kit.turn.attempt"] = event.attempt;
  attributes["kit.turn.purpose"] = event.purpose;
  if (options.openInference) {
    attributes[others.model] = model;
    attributes[others.provider] = provider;
  }
  if (event.receipt !== undefined) addReceipt(attributes, event.receipt);
  return Object.assign(attributes, settingsAttributes(event));
}

/** The settings of a call. The conventions say to set `compacted` only where it is true. */
function settingsAttributes({ settings = {}, compacted }: EventOf<"turn_request">): Attributes {
  const { stop_sequences } = settings;
  return defined({
    [names.temperature]: settings.temperature,
    [names.topP]: settings.top_p,
    [names.topK]: settings.top_k,
    [names.frequencyPenalty]: settings.frequency_penalty,
    [names.presencePenalty]: settings.presence_penalty,
    [names.seed]: settings.seed,
    [names.maxTokens]: settings.max_output_tokens,
    [names.stopSequences]: stop_sequences === undefined ? undefined : [...stop_sequences],
    [names.reasoningLevel]: settings.reasoning,
    [names.outputType]: settings.output,
    [names.compacted]: compacted,
  });
}

/** Items of a receipt that one span names; the event has up to 200. */
const maxReceiptItems = 50;
const maxItemChars = 128;

/** Adds the names and sizes of the items in the model's context, without their texts. */
function addReceipt(attributes: Attributes, receipt: TurnReceipt): void {
  const { digest, items, tokens, before, added = [], omitted = 0 } = receipt;
  attributes["kit.receipt.digest"] = digest;
  attributes["kit.receipt.items"] = items;
  attributes["kit.receipt.tokens"] = tokens;
  if (before !== undefined) attributes["kit.receipt.before"] = before;
  if (added.length === 0) return;
  attributes["kit.receipt.added"] = added.slice(0, maxReceiptItems).map(({ kind, id, tokens: size }) => {
    const name = id.length <= maxItemChars ? id : `${id.slice(0, maxItemChars).toWellFormed()}…`;
    return `${kind} ${name} (${size})`;
  });
  const left = omitted + Math.max(0, added.length - maxReceiptItems);
  if (left > 0) attributes["kit.receipt.omitted"] = left;
}

export function answerAttributes(event: EventOf<"turn">, options: AttributeOptions): Attributes {
  const { finish_reason, response_id, response_model, first_chunk_ms, usage } = event;
  const attributes = usageAttributes(usage, options);
  attributes[names.finishReasons] = [finishReasonOf(finish_reason)];
  if (response_id !== undefined) attributes[names.responseId] = response_id;
  if (response_model !== undefined) attributes[names.responseModel] = response_model;
  if (first_chunk_ms !== undefined) attributes[names.timeToFirstChunk] = first_chunk_ms / 1_000;
  if (usage.cost.total !== null) attributes[others.cost] = usage.cost.total;
  return attributes;
}

export function usageAttributes(usage: Usage, { openInference }: AttributeOptions): Attributes {
  const attributes: Attributes = {
    [names.inputTokens]: usage.input,
    [names.outputTokens]: usage.output,
    [names.cacheRead]: usage.cache_read,
    [names.cacheWrite]: usage.cache_write,
  };
  if (usage.cost.total !== null) attributes["kit.usage.cost"] = usage.cost.total;
  if (usage.reasoning !== undefined) attributes[names.reasoningTokens] = usage.reasoning;
  if (openInference) {
    attributes[others.promptTokens] = usage.input;
    attributes[others.completionTokens] = usage.output;
    attributes[others.totalTokens] = usage.total_tokens;
  }
  return attributes;
}

/** The span of a call to an MCP server's tool also represents the request to the server. */
export function toolAttributes({ tool, tool_call_id, mcp }: EventOf<"tool_start">): Attributes {
  const attributes: Attributes = {
    [names.operation]: operations.tool,
    [names.tool]: tool,
    [names.toolType]: "function",
    [names.toolCall]: tool_call_id,
  };
  if (mcp === undefined) return attributes;
  return {
    ...attributes,
    [names.toolType]: "extension",
    [names.mcpMethod]: "tools/call",
    [names.mcpTransport]: mcp.transport,
    "kit.mcp.server": mcp.server,
    "kit.mcp.tool": mcp.tool,
  };
}
