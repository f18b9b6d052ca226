import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import * as z from "zod/mini";
import { callback, expecting, type Fields, faultOf, list, object } from "../../base/settings.ts";
import type { ImagePart, ReasoningPart, TextPart, ToolCallPart } from "../../protocol/message.ts";

/** The call that a hook decides about: its agent, instance, session and operation. */
export interface HookCall {
  readonly agent: string;
  readonly instance: string;
  readonly session: string;
  readonly operationId: string;
  readonly signal: AbortSignal;
}

/** The hook refuses a call or its result, with a reason for the model or the caller. */
export interface Refusal {
  readonly refuse: string;
}

export interface ModelHookCall extends HookCall {
  /** `provider/model`. */
  readonly model: string;
  readonly prompt: LanguageModelV4Prompt;
}

export interface ModelHookAnswer extends Omit<ModelHookCall, "prompt"> {
  readonly content: readonly (TextPart | ReasoningPart | ToolCallPart)[];
}

export interface ToolHookCall extends HookCall {
  readonly tool: string;
  readonly toolCallId: string;
  readonly args: unknown;
}

export interface ToolHookResult extends ToolHookCall {
  readonly content: readonly (TextPart | ImagePart)[];
  readonly isError: boolean;
}

// biome-ignore lint/suspicious/noConfusingVoidType: a hook that only observes returns nothing.
type Decision<Change> = Change | Refusal | undefined | void;
type Hook<Given, Change> = (given: Given) => Decision<Change> | Promise<Decision<Change>>;

/**
 * Hooks around model calls and tool calls. A hook returns nothing, a change, or a refusal with its reason. The model reads
 * the refusal of a tool call as the result; the refusal of a model call or answer fails the operation with `forbidden`. A
 * hook that throws refuses. Changed arguments pass the tool's schema, the policy and approvals like all others. Hooks run
 * again for calls of a resumed operation; an approval is valid only for the arguments that a person approved.
 *
 * @example
 * import { createAgent } from "kit";
 *
 * export default createAgent({
 *   hooks: {
 *     beforeTool: ({ tool, args }) =>
 *       tool === "write" && JSON.stringify(args).includes("TODO") ? { refuse: "Finish it first." } : undefined,
 *   },
 * });
 */
const agentHooks = object(
  {
    beforeModel: callback<Hook<ModelHookCall, { readonly prompt: LanguageModelV4Prompt }>>(),
    afterModel: callback<Hook<ModelHookAnswer, Pick<ModelHookAnswer, "content">>>(),
    beforeTool: callback<Hook<ToolHookCall, { readonly args: unknown }>>(),
    afterTool: callback<Hook<ToolHookResult, ChangedResult>>(),
  },
  { of: "hook" },
);
export interface AgentHooks extends Fields<typeof agentHooks> {}

export interface ChangedResult {
  readonly content: string | ToolHookResult["content"];
  readonly isError?: boolean | undefined;
}

const form = expecting("an object such as { beforeTool: (call) => … }, or a list of them");

/** The hooks of a profile, or of the configuration. */
export const hooks = z.union([agentHooks, list(agentHooks)], { error: form });

/** Returns the first error of hooks, as a sentence without a full stop. */
export function faultOfHooks(value: unknown): string | undefined {
  return faultOf(hooks, value);
}
