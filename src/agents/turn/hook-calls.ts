import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { KitError } from "../../base/kit-error.ts";
import type { ImagePart, TextPart, ToolCallPart } from "../../protocol/message.ts";
import type { AgentHooks, HookCall, Refusal } from "../define/hooks.ts";
import { maskValue, type SecretMask } from "../secrets.ts";
import type { ModelReply } from "./call-model.ts";
import { failed, type Outcome } from "./running-call.ts";

/** The hooks of a turn, around the call of its model. */
export interface TurnHooks {
  /** Throws `forbidden` where one refuses or throws. */
  before(options: LanguageModelV4CallOptions, model: string): Promise<LanguageModelV4CallOptions>;
  after(reply: ModelReply, model: string): Promise<ModelReply>;
}

/** The hooks around the calls of tools. */
export interface ToolHooks {
  /** The call with the arguments that the hooks leave, or the outcome of one that they refuse. */
  before(call: ToolCallPart): Promise<ToolCallPart | { readonly refused: Outcome }>;
  after(call: ToolCallPart, outcome: Outcome): Promise<Outcome>;
}

interface HooksAt {
  readonly hooks: readonly AgentHooks[];
  readonly at: HookCall;
  readonly mask: SecretMask | undefined;
}

/** The hooks in their order, each with what those before it have left. */
export function turnHooks({ hooks, at, mask }: HooksAt): TurnHooks | undefined {
  if (!hooks.some(({ beforeModel, afterModel }) => (beforeModel ?? afterModel) !== undefined))
    return undefined;
  return {
    async before(options, model) {
      let { prompt } = options;
      for (const { beforeModel } of hooks) {
        const decision = await ask("beforeModel", () => beforeModel?.({ ...at, model, prompt }));
        if (decision === undefined) continue;
        if ("refuse" in decision)
          throw forbidden(`A hook refused the call of the model: ${decision.refuse}`, mask);
        ({ prompt } = decision);
      }
      return { ...options, prompt };
    },
    async after(reply, model) {
      let content = mask === undefined ? reply.content : maskValue(reply.content, mask);
      for (const { afterModel } of hooks) {
        const decision = await ask("afterModel", () => afterModel?.({ ...at, model, content }));
        if (decision === undefined) continue;
        if ("refuse" in decision)
          throw forbidden(`A hook refused the answer of the model: ${decision.refuse}`, mask);
        ({ content } = decision);
      }
      return { ...reply, content };
    },
  };
}

export function toolHooks({ hooks, at, mask }: HooksAt): ToolHooks | undefined {
  if (!hooks.some(({ beforeTool, afterTool }) => (beforeTool ?? afterTool) !== undefined)) return undefined;
  const clean = <Value>(value: Value): Value => (mask === undefined ? value : maskValue(value, mask));
  return {
    async before(call) {
      let { args } = call;
      for (const { beforeTool } of hooks) {
        const given = { ...at, tool: call.tool, toolCallId: call.tool_call_id, args: structuredClone(args) };
        const decision = await ask("beforeTool", () => beforeTool?.(given)).catch(refusalOf);
        if (decision === undefined) continue;
        if ("refuse" in decision)
          return { refused: failed(`The call was refused, and was not run: ${decision.refuse}`) };
        // A copy: a hook that keeps its object cannot change what is checked and approved.
        args = JSON.parse(JSON.stringify(decision.args ?? null));
      }
      return args === call.args ? call : { ...call, args };
    },
    async after(call, outcome) {
      let result = outcome;
      for (const { afterTool } of hooks) {
        const parts: readonly (TextPart | ImagePart)[] =
          typeof result.content === "string" ? [{ type: "text", text: result.content }] : result.content;
        const given = {
          ...at,
          tool: call.tool,
          toolCallId: call.tool_call_id,
          args: call.args,
          content: clean(parts),
          isError: result.isError === true,
        };
        const decision = await ask("afterTool", () => afterTool?.(given)).catch(refusalOf);
        if (decision === undefined) continue;
        const { content, isError } =
          "refuse" in decision
            ? failed(`The call was run, and its result is withheld: ${decision.refuse}`)
            : { isError: result.isError, ...decision };
        result = {
          content,
          ...(isError === true ? { isError } : {}),
          ...(result.outcome === undefined ? {} : { outcome: result.outcome }),
        };
      }
      return result;
    },
  };
}

/** The field of a hook's change. */
const changes = {
  beforeModel: "prompt",
  afterModel: "content",
  beforeTool: "args",
  afterTool: "content",
} as const satisfies Record<keyof AgentHooks, string>;

/** Asks a hook. Throws `forbidden` where it throws, or gives what is not a decision. */
async function ask<Said>(
  name: keyof AgentHooks,
  hook: () => Said | Promise<Said>,
): Promise<Extract<Said, object> | undefined> {
  let decision: unknown;
  try {
    decision = await hook();
  } catch (error) {
    // biome-ignore lint/style/useErrorCause: the cause is among its fields.
    throw new KitError({
      code: "forbidden",
      message: `The hook ${name} failed: nothing passes it.`,
      cause: error,
    });
  }
  if (decision === undefined) return undefined;
  const isDecision =
    typeof decision === "object" && decision !== null && ("refuse" in decision || changes[name] in decision);
  if (isDecision) return decision as Extract<Said, object>;
  throw new KitError({
    code: "forbidden",
    message: `The hook ${name} gave what is not a decision: nothing passes it.`,
    hint: `Return nothing, a change such as { ${changes[name]}: … }, or { refuse: "…" }.`,
  });
}

function refusalOf(error: unknown): Refusal {
  return { refuse: error instanceof KitError ? error.message : "A hook failed." };
}

function forbidden(message: string, mask: SecretMask | undefined): KitError {
  return new KitError({ code: "forbidden", message: mask?.(message) ?? message });
}
