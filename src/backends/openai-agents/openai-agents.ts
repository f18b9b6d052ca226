import type {
  Agent,
  AgentInputItem,
  AgentOutputItem,
  AgentOutputType,
  FunctionTool,
  Handoff,
  Model,
  ModelRequest,
  RunContext,
  Tool,
} from "@openai/agents";
import { KitError } from "../../base/kit-error.ts";
import type { Message, ToolResultPart } from "../../protocol/message.ts";
import { textOf } from "../../protocol/read-records.ts";
import type { AgentBackend, BackendOperation, BackendTurn, OwnTool, TurnRequest } from "../contract.ts";
import { partsText, succeededCalls } from "../history.ts";
import { loadPeer, oncePerProject } from "../load-peer.ts";

/** The models and tools that agents are built with; they get them as the `context` of their run. */
export interface OpenAiAgentsWork {
  /** The tools of the operation; kit runs them under its agent's policy. */
  readonly tools: FunctionTool<unknown>[];
  readonly operation: BackendOperation;
}

/** An `Agent` of the package, with any context and output. */
export interface OpenAiAgent {
  readonly name: string;
  readonly handoffs: unknown;
  clone(config: never): unknown;
}

export interface OpenAiAgentsOptions {
  /** The agent that starts. Agents without tools get all tools of the operation. */
  readonly agent: OpenAiAgent;
}

/**
 * Creates a backend whose turns agents of the OpenAI Agents SDK decide: an agent with its handoffs, or a function that
 * builds one from the operation's tools. Default: an agent that calls tools until it is done. Events report handoffs as
 * tasks.
 *
 * Kit calls the model of the kit agent: `model` and `modelSettings` of the package's agents have no effect.
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
      const crew = new Crew({ sdk, operation, tools: work.tools, fills: typeof build === "object" });
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
      // An agent may stop at the result of a tool, which then is the answer.
      if (crew.endsWithCalls())
        operation.answer(typeof finalOutput === "string" ? finalOutput : JSON.stringify(finalOutput));
    },
  };
}

/** Written by hand: the package's `tool` changes names, and validates arguments, which is kit's task. */
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

type SdkAgent = Agent<unknown, AgentOutputType>;

interface CrewOptions {
  readonly sdk: OpenAiAgentsSdk;
  readonly operation: BackendOperation;
  readonly tools: FunctionTool<unknown>[];
  /** Whether agents without tools get all of them. */
  readonly fills: boolean;
}

/** Copies agents for one run. Kit calls the models of the copies, runs their tools, and permits their handoffs. */
class Crew {
  readonly #options: CrewOptions;
  readonly #copies = new Map<SdkAgent, SdkAgent>();
  #newest: BackendTurn | undefined;
  /** The handoff of the newest turn; of several, the first one counts. */
  #accepted: BackendTurn["calls"][number] | undefined;

  constructor(options: CrewOptions) {
    this.#options = options;
  }

  /** Returns a copy of the agent that starts, or that took over before the interruption. The copy calls kit. */
  startFrom(root: SdkAgent): SdkAgent {
    let agent = root;
    // A repair or a resumed operation continues with the agent that took over.
    for (const { tool } of succeededCalls(this.#options.operation)) {
      agent = this.#handoffsOf(agent).find(({ toolName }) => toolName === tool)?.agent ?? agent;
    }
    return this.#copyOf(agent);
  }

  /** Whether the newest answer of the model asks for calls. */
  endsWithCalls(): boolean {
    return (this.#newest?.calls.length ?? 0) > 0;
  }

  #copyOf(agent: SdkAgent): SdkAgent {
    const { operation, tools, fills } = this.#options;
    const known = this.#copies.get(agent);
    if (known !== undefined) return known;
    refuseOwn(agent, tools);
    const given =
      fills && agent.tools.length === 0
        ? tools
        : tools.filter(({ name }) => agent.tools.some((tool) => tool.name === name));
    const copy: SdkAgent = agent.clone({
      tools: given as Tool[],
      handoffs: [],
      model: this.#modelOf(agent),
      modelSettings: { retry: { maxRetries: 0 } },
    });
    this.#copies.set(agent, copy);
    this.#copies.set(copy, copy);
    copy.handoffs = this.#handoffsOf(agent).map((handoff) =>
      handoff.clone({
        agent: this.#copyOf(handoff.agent),
        onInvokeHandoff: async (context, args) => {
          const accepted = this.#accepted;
          const result = accepted === undefined ? undefined : await operation.tool(accepted.id);
          return result?.is_error === true
            ? copy
            : this.#copyOf(await handoff.onInvokeHandoff(context, args));
        },
      }),
    );
    return copy;
  }

  #handoffsOf({ handoffs }: SdkAgent): readonly Handoff<unknown, AgentOutputType>[] {
    return handoffs.map((each) => this.#options.sdk.getHandoff(each as SdkAgent));
  }

  #modelOf(agent: SdkAgent): Model {
    return {
      getResponse: (request) => this.#answer(agent, request),
      getStreamedResponse() {
        throw new KitError({ code: "internal_error", message: "Kit streams what its model says by itself." });
      },
    };
  }

  async #answer(agent: SdkAgent, request: ModelRequest): ReturnType<Model["getResponse"]> {
    const { sdk, operation } = this.#options;
    const own = this.#handoffsOf(agent).filter(({ toolName }) =>
      request.handoffs.some((each) => each.toolName === toolName),
    );
    const handoffTools = own.map((handoff) => this.#toOwnTool(handoff));
    const turn = await operation.turn(this.#toRequest(request, handoffTools));
    this.#newest = turn;
    this.#accepted = turn.calls.find(({ tool }) => own.some(({ toolName }) => toolName === tool));
    const { usage } = turn;
    return {
      usage: new sdk.Usage({
        requests: 1,
        inputTokens: usage.input,
        outputTokens: usage.output,
        totalTokens: usage.total_tokens,
      }),
      output: toOutputItems({ text: answerText(turn, request, agent), calls: turn.calls }),
    };
  }

  #toOwnTool(handoff: Handoff<unknown, AgentOutputType>): OwnTool {
    const { toolName: name, toolDescription: description, inputJsonSchema: schema, agent } = handoff;
    return {
      name,
      description,
      schema: schema as OwnTool["schema"],
      handsTo: agent.name,
      run: () => {
        if (this.#accepted !== undefined && this.#accepted.tool !== name)
          throw new Error("The work was handed to another agent in the same turn, which goes on now.");
        return this.#options.sdk.getTransferMessage(agent);
      },
    };
  }

  #toRequest(request: ModelRequest, handoffs: readonly OwnTool[]): TurnRequest | undefined {
    const { operation } = this.#options;
    const { systemInstructions = "", outputType } = request;
    const names = request.tools.map((tool) => ("name" in tool ? (tool.name ?? "") : ""));
    const isAll = handoffs.length === 0 && names.length === operation.tools.length;
    const asked: TurnRequest = {
      ...(systemInstructions === "" ? {} : { system: `${operation.system}\n\n${systemInstructions}` }),
      ...(isAll ? {} : { tools: [...names, ...handoffs] }),
      ...(typeof outputType === "object" ? { schema: outputType.schema as TurnRequest["schema"] & {} } : {}),
    };
    return Object.keys(asked).length === 0 ? undefined : asked;
  }
}

/** The answer for the package: only JSON if its agent has an output type. */
function answerText(
  { text, calls, value }: BackendTurn,
  { outputType }: ModelRequest,
  { name }: SdkAgent,
): string {
  if (typeof outputType !== "object" || calls.length > 0) return text;
  if (value !== undefined) return JSON.stringify(value);
  throw new KitError({
    code: "typed_output",
    message: `The answer of the agent "${name}" does not fit its \`outputType\`.`,
  });
}

/** Refuses features that kit could not control: they would run without approval. */
function refuseOwn(agent: SdkAgent, tools: readonly FunctionTool<unknown>[]): void {
  const names = new Set(tools.map(({ name }) => name));
  const own = agent.tools.find((tool) => tool.type !== "function" || !names.has(tool.name));
  const filtered = agent.handoffs.find((each) => "inputFilter" in each && each.inputFilter !== undefined);
  const what =
    own !== undefined
      ? `a tool "${own.name}" that the operation does not have`
      : agent.mcpServers.length > 0
        ? "MCP servers of its own"
        : filtered !== undefined
          ? "a handoff with an `inputFilter`: kit shows each agent the whole conversation"
          : undefined;
  if (what === undefined) return;
  throw new KitError({
    code: "invalid_request",
    message: `The agent "${agent.name}" has ${what}.`,
    hint: "Give tools and MCP servers to kit's agent (`tools`, `mcp`): all of them are the operation's, and kit runs them under the agent's policy.",
  });
}

type OpenAiAgentsSdk = typeof import("@openai/agents");

/** Loads the package from the project, else from kit's dependencies. */
const loadOpenAiAgents = oncePerProject(async (projectRoot): Promise<OpenAiAgentsSdk> => {
  const signals = ["SIGINT", "SIGTERM", "unhandledRejection", "beforeExit"];
  const source: NodeJS.EventEmitter = process;
  const before = new Map(signals.map((name) => [name, new Set(source.listeners(name))]));
  const sdk = await loadPeer<OpenAiAgentsSdk>("@openai/agents", {
    from: projectRoot,
    what: "The backend openai_agents",
    packages: ["@openai/agents"],
  });
  // The package's tracing, which is off, ends the process on signals, before kit has suspended running work.
  for (const name of signals) {
    for (const listener of source.listeners(name)) {
      const isIts = before.get(name)?.has(listener) === false && String(listener).includes("cleanup");
      if (isIts) source.off(name, listener as () => void);
    }
  }
  return sdk;
});

/** Converts messages of kit to items of the package. Kit sends the model its own history, not these. */
function toInputItem(message: Message): readonly AgentInputItem[] {
  switch (message.role) {
    case "user":
      return [{ type: "message", role: "user", content: partsText(message.content) }];
    case "tool":
      return message.content.map((result) => ({
        type: "function_call_result",
        callId: result.tool_call_id,
        name: result.tool,
        status: "completed",
        output: toolOutput(result),
      }));
    case "assistant":
      return toItems(
        textOf(message),
        message.content.flatMap((part) =>
          part.type === "tool_call" ? [{ id: part.tool_call_id, tool: part.tool, args: part.args }] : [],
        ),
      );
  }
}

function toOutputItems({ text, calls }: Pick<BackendTurn, "text" | "calls">): AgentOutputItem[] {
  return toItems(text, calls);
}

function toolOutput({ content }: ToolResultPart): string {
  return partsText(content);
}

function toItems(
  text: string,
  calls: readonly { readonly id: string; readonly tool: string; readonly args: unknown }[],
): (AgentInputItem & AgentOutputItem)[] {
  const item = {
    type: "message" as const,
    role: "assistant" as const,
    status: "completed" as const,
    content: [{ type: "output_text" as const, text }],
  };
  const asked = calls.map(({ id, tool, args }) => ({
    type: "function_call" as const,
    callId: id,
    name: tool,
    status: "completed" as const,
    arguments: JSON.stringify(args),
  }));
  return text === "" ? asked : [item, ...asked];
}
