import { KitError } from "../../base/kit-error.ts";
import type { BackendOperation, BackendTurn, OwnTool, TurnRequest } from "../contract.ts";
import { succeededCalls } from "../history.ts";
import { toJsonSchema, toModelContent, toResponse } from "./contents.ts";
import type { AdkAgent, AdkContent, AdkRequest, AdkToolRun, GoogleAdkSdk } from "./google-adk-sdk.ts";

/** The package's own tool, by which agents transfer the work. */
const transferTool = "transfer_to_agent";

interface AgentTreeOptions {
  readonly sdk: GoogleAdkSdk;
  readonly operation: BackendOperation;
  readonly tools: readonly object[];
  /** Whether agents without tools get all of them. */
  readonly fills: boolean;
  /** Calls back out of the package, into the context that the operation runs in. */
  readonly inKit: <Value>(work: () => Value) => Value;
}

/** Agents copied for one run: each has a model that is kit's, tools that kit runs, and transfers where kit has allowed it. */
export class AgentTree {
  /** The error of a model call, which the package turns into an event. */
  failure: { readonly error: unknown } | undefined;
  /** The text of the model's newest answer, as the package has it. */
  answer: string | undefined;
  /** The agent that a transfer of the newest turn has named. */
  #transferredTo: string | undefined;
  readonly #options: AgentTreeOptions;

  constructor(options: AgentTreeOptions) {
    this.#options = options;
  }

  /** One agent that calls tools until it is done. */
  plain(): AdkAgent {
    const { sdk, tools } = this.#options;
    return new sdk.LlmAgent({
      name: "kit",
      model: this.#modelOf(() => undefined),
      tools,
      disallowTransferToParent: true,
      disallowTransferToPeers: true,
    });
  }

  /** A copy of the agent and of those below it. Throws `invalid_request` for what kit could not hold to its agent's policy. */
  copyOf(agent: object): AdkAgent {
    const { sdk, tools, fills } = this.#options;
    if (!sdk.isLlmAgent(agent)) throw notLlm(agent);
    refuseOwn(agent, tools);
    const subAgents = agent.subAgents.map((each) => this.copyOf(each));
    const copy: AdkAgent = agent.clone({
      tools: fills && agent.tools.length === 0 ? tools : agent.tools,
      subAgents,
      model: this.#modelOf(() => ({ agent: copy, schema: agent.outputSchema })),
      // Kit asks for it: the package would have the model call a tool of its own.
      outputSchema: undefined,
      disallowTransferToParent: agent.disallowTransferToParent,
      disallowTransferToPeers: agent.disallowTransferToPeers,
    });
    return copy;
  }

  /** The agent that has the work: a repair, and work that was interrupted, go on with it. */
  current(root: AdkAgent): AdkAgent {
    let agent = root;
    for (const { tool, args } of succeededCalls(this.#options.operation)) {
      if (tool === transferTool) agent = root.findAgent(nameIn(args)) ?? agent;
    }
    return agent;
  }

  #modelOf(own: () => Pick<Asked, "agent" | "schema"> | undefined): object {
    const ask = (request: AdkRequest): Promise<AdkAnswer> => this.#ask({ ...own(), request });
    return new (class extends this.#options.sdk.BaseLlm {
      async *generateContentAsync(request: AdkRequest): AsyncGenerator<AdkAnswer, void> {
        yield await ask(request);
      }

      async connect(): Promise<never> {
        throw new KitError({
          code: "invalid_request",
          message: "Agents under kit have no live connections.",
        });
      }
    })({ model: "kit" });
  }

  async #ask(asked: Asked): Promise<AdkAnswer> {
    const { inKit, operation } = this.#options;
    try {
      this.#transferredTo = undefined;
      const request = this.#toTurnRequest(asked);
      const turn = await inKit(() => operation.turn(request));
      const { usage, calls } = turn;
      this.answer = textFor(asked, turn);
      return {
        content: toModelContent({ text: this.answer, calls }),
        turnComplete: true,
        finishReason: "STOP",
        usageMetadata: {
          promptTokenCount: usage.input,
          candidatesTokenCount: usage.output,
          totalTokenCount: usage.total_tokens,
        },
      };
    } catch (error) {
      this.failure ??= { error };
      throw error;
    }
  }

  #toTurnRequest({ agent, schema, request }: Asked): TurnRequest | undefined {
    const { operation } = this.#options;
    const { toolsDict, config } = request;
    const targets = agent === undefined || !Object.hasOwn(toolsDict, transferTool) ? [] : targetsOf(agent);
    if (targets.length > 0) toolsDict[transferTool] = this.#toTransfer();
    const names = Object.keys(toolsDict).filter((name) => name !== transferTool);
    const isAll = targets.length === 0 && names.length === operation.tools.length;
    const system = config?.systemInstruction;
    const own: TurnRequest = {
      ...(typeof system === "string" ? { system: `${operation.system}\n\n${system}` } : {}),
      ...(isAll ? {} : { tools: [...names, ...(targets.length === 0 ? [] : [this.#toOwnTool(targets)])] }),
      ...(schema === undefined ? {} : { schema: toJsonSchema(schema) }),
    };
    return Object.keys(own).length === 0 ? undefined : own;
  }

  #toOwnTool(targets: readonly AdkAgent[]): OwnTool {
    return {
      name: transferTool,
      description: "Transfers the work to another agent, which goes on with it.",
      schema: {
        type: "object",
        properties: {
          agentName: {
            type: "string",
            enum: targets.map(({ name }) => name),
            description: "The agent to transfer to.",
          },
        },
        required: ["agentName"],
        additionalProperties: false,
      },
      handsTo: nameIn,
      run: (args) => {
        if (this.#transferredTo !== undefined)
          throw new Error(
            `The work was transferred to ${this.#transferredTo} in the same turn, which goes on now.`,
          );
        this.#transferredTo = nameIn(args);
        return `Transferred to ${this.#transferredTo}.`;
      },
    };
  }

  #toTransfer(): object {
    const { sdk, operation, inKit } = this.#options;
    return new (class extends sdk.BaseTool {
      async runAsync({ args, toolContext }: AdkToolRun): Promise<object> {
        const result = await inKit(() => operation.tool(toolContext.functionCallId ?? ""));
        if (!result.is_error) toolContext.actions.transferToAgent = nameIn(args);
        return toResponse(result);
      }
    })({ name: transferTool, description: "" });
  }
}

/** An agent that asks the model; none for one that kit has made. */
interface Asked {
  readonly agent?: AdkAgent;
  readonly schema?: AdkAgent["outputSchema"];
  readonly request: AdkRequest;
}

interface AdkAnswer {
  readonly content: AdkContent;
  readonly turnComplete: true;
  readonly finishReason: "STOP";
  readonly usageMetadata: {
    readonly promptTokenCount: number;
    readonly candidatesTokenCount: number;
    readonly totalTokenCount: number;
  };
}

/** A tool of the operation as agents have it: kit runs it. */
export function toAdkTool(
  tool: BackendOperation["tools"][number],
  { sdk, operation, inKit }: Pick<AgentTreeOptions, "sdk" | "operation" | "inKit">,
): object {
  const { name, description, schema } = tool;
  return new (class extends sdk.BaseTool {
    _getDeclaration(): object {
      return { name, description, parametersJsonSchema: schema };
    }

    async runAsync({ toolContext }: AdkToolRun): Promise<object> {
      return toResponse(await inKit(() => operation.tool(toolContext.functionCallId ?? "")));
    }
  })({ name, description });
}

/** The agents that one may transfer to, as the package tells the model. */
function targetsOf(agent: AdkAgent): readonly AdkAgent[] {
  const { parentAgent } = agent;
  const below = agent.subAgents as readonly AdkAgent[];
  if (parentAgent === undefined) return below;
  const peers = parentAgent.subAgents as readonly AdkAgent[];
  return [
    ...below,
    ...(agent.disallowTransferToParent ? [] : [parentAgent]),
    ...(agent.disallowTransferToPeers ? [] : peers.filter(({ name }) => name !== agent.name)),
  ];
}

function nameIn(args: unknown): string {
  return typeof args === "object" && args !== null && "agentName" in args ? String(args.agentName) : "";
}

/** The answer as the package reads it: JSON alone, where its agent answers with that. */
function textFor({ agent, schema }: Asked, { text, calls, value }: BackendTurn): string {
  if (schema === undefined || calls.length > 0) return text;
  if (value !== undefined) return JSON.stringify(value);
  throw new KitError({
    code: "typed_output",
    message: `The answer of the agent "${agent?.name}" does not fit its \`outputSchema\`.`,
  });
}

/** Settings that would have the package do what kit does. */
const notKits: Readonly<Record<string, string>> = {
  codeExecutor: "a code executor: kit runs code in its agent's sandbox",
  beforeToolCallback: "a `beforeToolCallback`: kit runs calls under its agent's policy",
  afterToolCallback: "an `afterToolCallback`: kit shows the model the results of tools as they are",
  afterModelCallback: "an `afterModelCallback`: kit has streamed and stored the answer by then",
  contextCompactors: "context compactors: kit shortens the history",
  requestProcessors: "request processors: kit calls the model with the history that it stores",
  responseProcessors: "response processors: kit has streamed and stored the answer by then",
  mode: "a `mode`: kit runs agents that transfer the work, and no nodes of workflows",
};

/** Refuses features that kit could not control: they would run without approval. */
function refuseOwn(agent: AdkAgent, tools: readonly object[]): void {
  const own = agent.tools.find((tool) => !tools.includes(tool));
  const setting = Object.keys(notKits).find((key) => isSet(agent.config[key]));
  const what =
    own !== undefined
      ? `a tool "${"name" in own ? own.name : own.constructor.name}" that the operation does not have`
      : setting !== undefined
        ? notKits[setting]
        : agent.includeContents === "none"
          ? '`includeContents: "none"`: kit shows each agent the whole conversation'
          : undefined;
  if (what !== undefined) throw refused(`The agent "${agent.name}" has ${what}.`);
}

function isSet(value: unknown): boolean {
  return value !== undefined && !(Array.isArray(value) && value.length === 0);
}

function notLlm(agent: object): KitError {
  const name = "name" in agent ? ` "${agent.name}"` : "";
  return refused(`The agent${name} is not an \`LlmAgent\`, but a ${agent.constructor.name}.`);
}

function refused(message: string): KitError {
  return new KitError({
    code: "invalid_request",
    message,
    hint: "Give tools and MCP servers to kit's agent (`tools`, `mcp`), steps that follow each other to a workflow of kit's: kit holds them to the agent's policy.",
  });
}
