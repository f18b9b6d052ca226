import type {
  Agent,
  AgentOutputType,
  FunctionTool,
  Handoff,
  Model,
  ModelRequest,
  Tool,
} from "@openai/agents";
import { KitError } from "../../base/kit-error.ts";
import type { BackendOperation, BackendTurn, OwnTool, TurnRequest } from "../contract.ts";
import { succeededCalls } from "../history.ts";
import { toOutputItems } from "./items.ts";
import type { OpenAiAgentsSdk } from "./openai-agents-peer.ts";

export type SdkAgent = Agent<unknown, AgentOutputType>;

interface CrewOptions {
  readonly sdk: OpenAiAgentsSdk;
  readonly operation: BackendOperation;
  readonly tools: FunctionTool<unknown>[];
  /** Whether agents without tools get all of them. */
  readonly fills: boolean;
}

export interface Crew {
  /** The agent that the work begins with, or that it was handed to before: a copy that asks kit. */
  startFrom(root: SdkAgent): SdkAgent;
  /** Whether the newest answer of the model asks for calls. */
  endsWithCalls(): boolean;
}

/** Copies agents for one run: each has a model that is kit's, tools that kit runs, and hands over when kit has allowed it. */
export function createCrew({ sdk, operation, tools, fills }: CrewOptions): Crew {
  const copies = new Map<SdkAgent, SdkAgent>();
  let newest: BackendTurn | undefined;
  /** The handoff that the newest turn asks for: of several, the first one counts. */
  let accepted: BackendTurn["calls"][number] | undefined;

  function copyOf(agent: SdkAgent): SdkAgent {
    const known = copies.get(agent);
    if (known !== undefined) return known;
    refuseOwn(agent, tools);
    const given =
      fills && agent.tools.length === 0
        ? tools
        : tools.filter(({ name }) => agent.tools.some((tool) => tool.name === name));
    const copy: SdkAgent = agent.clone({
      tools: given as Tool[],
      handoffs: [],
      model: modelOf(agent),
      modelSettings: { retry: { maxRetries: 0 } },
    });
    copies.set(agent, copy);
    copies.set(copy, copy);
    copy.handoffs = handoffsOf(agent).map((handoff) =>
      handoff.clone({
        agent: copyOf(handoff.agent),
        async onInvokeHandoff(context, args) {
          const result = accepted === undefined ? undefined : await operation.tool(accepted.id);
          return result?.is_error === true ? copy : copyOf(await handoff.onInvokeHandoff(context, args));
        },
      }),
    );
    return copy;
  }

  function handoffsOf({ handoffs }: SdkAgent): readonly Handoff<unknown, AgentOutputType>[] {
    return handoffs.map((each) => sdk.getHandoff(each as SdkAgent));
  }

  function modelOf(agent: SdkAgent): Model {
    return {
      async getResponse(request) {
        const own = handoffsOf(agent).filter(({ toolName }) =>
          request.handoffs.some((each) => each.toolName === toolName),
        );
        newest = await operation.turn(toRequest(request, own.map(toOwnTool)));
        accepted = newest.calls.find(({ tool }) => own.some(({ toolName }) => toolName === tool));
        const { usage } = newest;
        return {
          usage: new sdk.Usage({
            requests: 1,
            inputTokens: usage.input,
            outputTokens: usage.output,
            totalTokens: usage.total_tokens,
          }),
          output: toOutputItems({ text: textOf(newest, request, agent), calls: newest.calls }),
        };
      },
      getStreamedResponse() {
        throw new KitError({ code: "internal_error", message: "Kit streams what its model says by itself." });
      },
    };
  }

  function toOwnTool(handoff: Handoff<unknown, AgentOutputType>): OwnTool {
    const { toolName: name, toolDescription: description, inputJsonSchema: schema, agent } = handoff;
    return {
      name,
      description,
      schema: schema as OwnTool["schema"],
      handsTo: agent.name,
      run() {
        if (accepted !== undefined && accepted.tool !== name)
          throw new Error("The work was handed to another agent in the same turn, which goes on now.");
        return sdk.getTransferMessage(agent);
      },
    };
  }

  function toRequest(request: ModelRequest, handoffs: readonly OwnTool[]): TurnRequest | undefined {
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

  return {
    startFrom(root) {
      let agent = root;
      // A repair, and work that was interrupted, go on with the agent that had it.
      for (const { tool } of succeededCalls(operation)) {
        agent = handoffsOf(agent).find(({ toolName }) => toolName === tool)?.agent ?? agent;
      }
      return copyOf(agent);
    },
    endsWithCalls: () => (newest?.calls.length ?? 0) > 0,
  };
}

/** The answer as the package reads it: JSON alone, where its agent answers with that. */
function textOf(
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
