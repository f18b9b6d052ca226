import type { KitEvent } from "../protocol/event.ts";
import type { FinishReason } from "../protocol/message.ts";
import type { TracePlace } from "../protocol/tracing.ts";

/**
 * Names of the OpenTelemetry conventions for generative AI and MCP, as of 22 November 2026. All of them are "Development":
 * they change, and then they change here.
 *
 * Source: github.com/open-telemetry/semantic-conventions-genai, main (docs/gen-ai, docs/mcp); its metrics were renamed on
 * 22 September (#374, tokens) and 6 October 2026 (#521, `gen_ai.client.inference.*`). The package
 * `@opentelemetry/semantic-conventions` has older ones, and marks them as deprecated.
 */
export const names = {
  operation: "gen_ai.operation.name",
  provider: "gen_ai.provider.name",
  agent: "gen_ai.agent.name",
  agentId: "gen_ai.agent.id",
  agentDescription: "gen_ai.agent.description",
  conversation: "gen_ai.conversation.id",
  workflow: "gen_ai.workflow.name",
  requestModel: "gen_ai.request.model",
  requestStream: "gen_ai.request.stream",
  temperature: "gen_ai.request.temperature",
  topP: "gen_ai.request.top_p",
  topK: "gen_ai.request.top_k",
  frequencyPenalty: "gen_ai.request.frequency_penalty",
  presencePenalty: "gen_ai.request.presence_penalty",
  seed: "gen_ai.request.seed",
  maxTokens: "gen_ai.request.max_tokens",
  stopSequences: "gen_ai.request.stop_sequences",
  reasoningLevel: "gen_ai.request.reasoning.level",
  outputType: "gen_ai.output.type",
  compacted: "gen_ai.conversation.compacted",
  serverAddress: "server.address",
  serverPort: "server.port",
  responseId: "gen_ai.response.id",
  responseModel: "gen_ai.response.model",
  finishReasons: "gen_ai.response.finish_reasons",
  timeToFirstChunk: "gen_ai.response.time_to_first_chunk",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  cacheRead: "gen_ai.usage.cache_read.input_tokens",
  cacheWrite: "gen_ai.usage.cache_write.input_tokens",
  reasoningTokens: "gen_ai.usage.reasoning.output_tokens",
  tool: "gen_ai.tool.name",
  toolDescription: "gen_ai.tool.description",
  toolDefinitions: "gen_ai.tool.definitions",
  toolType: "gen_ai.tool.type",
  toolCall: "gen_ai.tool.call.id",
  toolArguments: "gen_ai.tool.call.arguments",
  toolResult: "gen_ai.tool.call.result",
  systemInstructions: "gen_ai.system_instructions",
  inputMessages: "gen_ai.input.messages",
  outputMessages: "gen_ai.output.messages",
  error: "error.type",
  mcpMethod: "mcp.method.name",
  mcpTransport: "network.transport",
} as const;

/** Values of `gen_ai.operation.name`. */
export const operations = {
  workflow: "invoke_workflow",
  agent: "invoke_agent",
  chat: "chat",
  tool: "execute_tool",
} as const;

/** Not of the conventions: Langfuse's cost of a call, OpenInference's names for Phoenix and Arize. */
export const others = {
  cost: "gen_ai.usage.cost",
  session: "session.id",
  kind: "openinference.span.kind",
  model: "llm.model_name",
  provider: "llm.provider",
  promptTokens: "llm.token_count.prompt",
  completionTokens: "llm.token_count.completion",
  totalTokens: "llm.token_count.total",
  input: "input.value",
  output: "output.value",
} as const;

/** Metrics; durations are seconds, in the buckets that the conventions ask for. */
export const metricNames = {
  inference: "gen_ai.client.inference.duration",
  firstChunk: "gen_ai.client.inference.time_to_first_chunk",
  input: "gen_ai.client.inference.usage.input_tokens",
  output: "gen_ai.client.inference.usage.output_tokens",
  cacheRead: "gen_ai.client.inference.usage.cache_read.input_tokens",
  cacheWrite: "gen_ai.client.inference.usage.cache_write.input_tokens",
  workflow: "gen_ai.invoke_workflow.duration",
  agent: "gen_ai.invoke_agent.duration",
  tool: "gen_ai.execute_tool.duration",
} as const;

export const inferenceBuckets: readonly number[] = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];

/** Agents, tools and workflows may take long: they wait for people. */
export const workBuckets: readonly number[] = [0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800, 7_200, 86_400];

/** `gen_ai.provider.name` of what the packages of the AI SDK call themselves; others keep the name they have. */
const providers: readonly (readonly [prefix: string, name: string])[] = [
  ["google.vertex", "gcp.vertex_ai"],
  ["google-vertex", "gcp.vertex_ai"],
  ["vertex", "gcp.vertex_ai"],
  ["google", "gcp.gemini"],
  ["amazon-bedrock", "aws.bedrock"],
  ["azure", "azure.ai.openai"],
  ["mistral", "mistral_ai"],
  ["xai", "x_ai"],
  ["moonshot", "moonshot_ai"],
];

/** `gen_ai.response.finish_reasons`; the conventions have no value for an aborted call. */
export function finishReasonOf(reason: FinishReason): string {
  if (reason === "tool-calls") return "tool_call";
  return reason === "content-filter" ? "content_filter" : reason;
}

/** The provider: `openai` for `openai.responses`; for a log without it, the prefix of the model's name. */
export function providerOf(provider: string | undefined, model: string): string {
  const providerName = provider ?? (model.includes("/") ? model.slice(0, model.indexOf("/")) : model);
  const found = providers.find(
    ([prefix]) =>
      providerName === prefix ||
      providerName.startsWith(`${prefix}.`) ||
      providerName.startsWith(`${prefix}-`),
  );
  return found?.[1] ?? providerName.split(".")[0] ?? providerName;
}

/** The model as its provider knows it. */
export function modelOf(model: string): string {
  return model.slice(model.indexOf("/") + 1);
}

/** The span that an event begins or ends, of those that go on over a crash. */
export function spanOf(event: KitEvent): readonly [key: string, isStart: boolean] | undefined {
  switch (event.type) {
    case "run_start":
    case "run_end":
      return [runKey(event.run_id), event.type === "run_start"];
    case "step_start":
    case "step_end":
      return [stepKey(event), event.type === "step_start"];
    case "operation_start":
    case "operation":
      return [operationKey(event), event.type === "operation_start"];
    case "task_start":
    case "task_end":
      return [taskKey(event), event.type === "task_start"];
    default:
      return undefined;
  }
}

type EventScope = Pick<
  TracePlace,
  "agent" | "instance_id" | "session" | "operation_id" | "turn_id" | "run_id"
>;

export function runKey(runId: string | undefined): string {
  return `run ${runId}`;
}

export function stepKey(event: {
  readonly run_id?: string | undefined;
  readonly step: string;
  readonly step_id?: string | undefined;
}): string {
  return `step ${event.run_id} ${event.step_id ?? event.step}`;
}

/** Ids of operations may be a caller's own: another session may have the same. */
export function operationKey({ agent, instance_id, session, operation_id }: EventScope): string {
  return `op ${agent}/${instance_id}/${session} ${operation_id}`;
}

export function turnKey(event: EventScope): string {
  return `turn ${event.turn_id} ${operationKey(event)}`;
}

/** Ids of calls are a provider's, and may come again in another turn. */
export function toolKey(event: EventScope, callId: string): string {
  return `tool ${callId} ${turnKey(event)}`;
}

export function taskKey({
  agent,
  instance_id,
  task_id,
}: Pick<KitEvent, "agent" | "instance_id" | "task_id">): string {
  return `task ${agent}/${instance_id} ${task_id}`;
}

export function compactionKey(event: EventScope): string {
  return `compaction ${operationKey(event)}`;
}
