import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { BaseMessage } from "@langchain/core/messages";
import type { StructuredToolInterface } from "@langchain/core/tools";
import { KitError } from "../../base/kit-error.ts";
import type { BackendOperation, BackendTurn, TurnRequest } from "../contract.ts";
import { type GivenMessages, toToolMessage, toTurnRequest } from "./graph-messages.ts";
import type { GraphPeers } from "./graph-peers.ts";

/** The models and tools that a graph is built with; its nodes get them as `config.configurable.kit`. */
export interface GraphWork {
  /** The agent's model: bind its `tools`, or none. Kit calls it: it counts, streams, stores and retries. */
  readonly model: BaseChatModel;
  /** The agent's tools; kit runs them under its policy and approvals. */
  readonly tools: StructuredToolInterface[];
  /** Copies files in and out of the agent's sandbox. */
  readonly files: BackendOperation["files"];
  readonly operation: BackendOperation;
}

/** Creates the model and the tools of an operation for its graph. */
export function toGraphWork(work: ModelWork): GraphWork {
  const { operation, peers, given } = work;
  return {
    model: createModel(work, []),
    tools: operation.tools.map(({ name, description }) =>
      peers.tools.tool(
        async (input: unknown, config: { readonly toolCall?: { readonly id?: string } }) => {
          const id = config.toolCall?.id;
          if (id === undefined || !/^call_\d+_\d+$/.test(id)) {
            const { content, is_error } = await operation.call(
              name,
              input as Readonly<Record<string, unknown>>,
            );
            const text = content
              .map((part) => (part.type === "text" ? part.text : `[${part.type}]`))
              .join("");
            return is_error ? `Error: ${text}` : text;
          }
          const result = await operation.tool(id);
          given.addResult(id);
          return toToolMessage(result, peers);
        },
        // Kit validates the arguments, and reports faults to the model.
        { name, description, schema: { type: "object" as const } },
      ),
    ) as unknown as StructuredToolInterface[],
    files: operation.files,
    operation,
  };
}

interface ModelWork {
  readonly operation: BackendOperation;
  readonly peers: GraphPeers;
  readonly given: GivenMessages;
}

function createModel(work: ModelWork, tools: readonly string[]): BaseChatModel {
  const { operation, peers, given } = work;
  const { AIMessage } = peers.messages;

  class KitChatModel extends peers.models.BaseChatModel {
    constructor() {
      // Kit retries model calls itself.
      super({ maxRetries: 0 });
    }

    _llmType(): string {
      return "kit";
    }

    override bindTools(bound: readonly unknown[]): BaseChatModel {
      return createModel(
        work,
        bound.map((tool) => nameOf(tool, operation)),
      );
    }

    override withStructuredOutput(schema: never, config?: { readonly includeRaw?: boolean }): never {
      const { RunnableLambda } = peers.runnables;
      return RunnableLambda.from(async (input: unknown) => {
        const messages = KitChatModel._convertInputToPromptValue(input as never).toChatMessages();
        const request: TurnRequest = {
          ...toTurnRequest({ messages, tools: [] }, operation, given),
          schema: peers.schemas.toJsonSchema(schema) as Readonly<Record<string, unknown>>,
          aside: true,
        };
        const { tools: _, ...aside } = request;
        const turn = await operation.turn(aside);
        if (turn.value === undefined)
          throw new KitError({
            code: "typed_output",
            message: "The model's answer does not fit the schema that a node asks for.",
          });
        const parsed = parse(schema, turn.value);
        return config?.includeRaw === true ? { raw: toAnswer(turn), parsed } : parsed;
      }) as never;
    }

    async _generate(messages: BaseMessage[]) {
      const turn = await operation.turn(toTurnRequest({ messages, tools }, operation, given));
      given.addTurn(turn.id);
      return { generations: [{ text: turn.text, message: toAnswer(turn) }] };
    }
  }

  function toAnswer({ id, text, calls, usage }: BackendTurn) {
    const tool_calls = calls.map((call) => ({
      id: call.id,
      name: call.tool,
      args: { ...call.args },
      type: "tool_call" as const,
    }));
    const usage_metadata = {
      input_tokens: usage.input,
      output_tokens: usage.output,
      total_tokens: usage.total_tokens,
    };
    return Object.assign(new AIMessage({ id, content: text, tool_calls }), { usage_metadata });
  }

  return new KitChatModel();
}

function parse(schema: unknown, value: unknown): unknown {
  const parser = schema as { readonly parse?: (value: unknown) => unknown };
  return typeof parser?.parse === "function" ? parser.parse(value) : value;
}

/** Refuses the graph's own tools: the graph would run them without approval. */
function nameOf(tool: unknown, { tools }: BackendOperation): string {
  const { name, function: called } = tool as {
    readonly name?: string;
    readonly function?: { readonly name: string };
  };
  const bound = name ?? called?.name ?? "";
  if (tools.some((each) => each.name === bound)) return bound;
  throw new KitError({
    code: "invalid_request",
    message: `The graph binds a tool "${bound}" that its agent does not have.`,
    hint: "Give it to the agent (`tools` of its profile, or of the call): the graph is given all of them, and kit runs them under the agent's policy.",
  });
}
