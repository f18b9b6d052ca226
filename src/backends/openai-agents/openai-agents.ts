import type { AgentOutputType, FunctionTool, RunContext } from "@openai/agents";
import type { AgentBackend, BackendOperation } from "../contract.ts";
import { createCrew, type SdkAgent } from "./crew.ts";
import { toInputItem, toolOutput } from "./items.ts";
import { loadOpenAiAgents } from "./openai-agents-peer.ts";

/** The models and tools that agents are built with; they get them as the `context` of their run. */
export interface OpenAiAgentsWork {
  /** The tools of the operation; kit runs them under its agent's policy. */
  readonly tools: FunctionTool<unknown>[];
  readonly operation: BackendOperation;
}

/** An `Agent` of the package, of whatever context and output. */
export interface OpenAiAgent {
  readonly name: string;
  readonly handoffs: unknown;
  clone(config: never): unknown;
}

export interface OpenAiAgentsOptions {
  /** Where work begins. Agents without tools of their own get all tools of the operation. */
  readonly agent: OpenAiAgent;
}

/**
 * Agents of the OpenAI Agents SDK decide the turns: an agent with those it hands over to, or a function that builds it of
 * the operation's tools; without any, one that calls tools until it is done. Handoffs are shown as tasks.
 *
 * Kit calls the model of its own agent: `model` and `modelSettings` of the package's agents do not count.
 *
 * @example
 * import { Agent } from "@openai/agents";
 * import { createAgent } from "kit";
 * import { openaiAgents } from "kit/backends/openai-agents";
 *
 * const billing = new Agent({ name: "Billing" });
 * export default createAgent({ backend: openaiAgents(({ tools }) => new Agent({ name: "Shop", tools, handoffs: [billing] })) })
 */
export function openaiAgents(
  build:
    | OpenAiAgentsOptions
    | ((work: OpenAiAgentsWork) => OpenAiAgent | Promise<OpenAiAgent>)
    | undefined = undefined,
): AgentBackend {
  return {
    name: "openai_agents",
    capabilities: { handoffs: true },
    async run(operation) {
      const sdk = await loadOpenAiAgents(operation.projectRoot);
      const work = { operation, tools: operation.tools.map((tool) => toFunctionTool(tool, operation)) };
      const root =
        build === undefined
          ? new sdk.Agent<unknown, AgentOutputType>({ name: "kit", tools: work.tools })
          : ((typeof build === "function" ? await build(work) : build.agent) as SdkAgent);
      const crew = createCrew({ sdk, operation, tools: work.tools, fills: typeof build === "object" });
      const runner = new sdk.Runner({ tracingDisabled: true });
      const { finalOutput } = await runner.run(
        crew.startFrom(root),
        operation.history().flatMap(toInputItem),
        {
          signal: operation.signal,
          context: work,
          // Kit's budget is the limit.
          maxTurns: null,
        },
      );
      // The result of a tool, where an agent stops at that.
      if (crew.endsWithCalls())
        operation.answer(typeof finalOutput === "string" ? finalOutput : JSON.stringify(finalOutput));
    },
  };
}

/** Made by hand: the package's own maker changes names, and checks arguments that are kit's to check. */
function toFunctionTool(
  tool: BackendOperation["tools"][number],
  operation: BackendOperation,
): FunctionTool<unknown> {
  return {
    type: "function",
    name: tool.name,
    description: tool.description,
    parameters: tool.schema as FunctionTool["parameters"],
    strict: false,
    async invoke(_context: RunContext<unknown>, _input, details) {
      return toolOutput(await operation.tool(details?.toolCall?.callId ?? ""));
    },
    needsApproval: async () => false,
    isEnabled: async () => true,
  };
}
