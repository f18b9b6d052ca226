import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import type { ImagePart, ReasoningPart, TextPart, ToolCallPart } from "../../protocol/message.ts";
import { type FieldCheck, type FieldChecks, faultOfFields, isObject } from "./check-fields.ts";

/** The call that a hook decides about: its agent, instance, session and operation. */
export interface HookCall {
  readonly agent: string;
  readonly instance: string;
  readonly session: string;
  readonly operationId: string;
  readonly signal: AbortSignal;
}

/** The hook does not let a call happen, or hides what came of it: the reason is told. */
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

// biome-ignore lint/suspicious/noConfusingVoidType: a hook that only looks returns nothing.
type Decision<Change> = Change | Refusal | undefined | void;
type Hook<Given, Change> = (given: Given) => Decision<Change> | Promise<Decision<Change>>;

/**
 * Hooks around calls of the model and of tools: each gives nothing, a change, or a refusal with its reason. A refused
 * call of a tool is a result that the model reads; a refused call or answer of a model fails the operation with
 * `forbidden`. A hook that throws refuses. Changed arguments pass the tool's schema, the policy and approvals as any do.
 * Hooks run again for calls of an operation that resumes; an approval holds only for the arguments that it was given for.
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
export interface AgentHooks {
  readonly beforeModel?: Hook<ModelHookCall, { readonly prompt: LanguageModelV4Prompt }> | undefined;
  readonly afterModel?: Hook<ModelHookAnswer, Pick<ModelHookAnswer, "content">> | undefined;
  readonly beforeTool?: Hook<ToolHookCall, { readonly args: unknown }> | undefined;
  readonly afterTool?:
    | Hook<
        ToolHookResult,
        { readonly content: string | ToolHookResult["content"]; readonly isError?: boolean }
      >
    | undefined;
}

export function hooksOf(given: AgentHooks | readonly AgentHooks[] | undefined): readonly AgentHooks[] {
  return given === undefined ? [] : [given].flat();
}

const hook: FieldCheck = ["a function", (value) => typeof value === "function"];
const fields: FieldChecks<AgentHooks> = {
  beforeModel: hook,
  afterModel: hook,
  beforeTool: hook,
  afterTool: hook,
};

const faultOf = (value: unknown): string | undefined =>
  [value]
    .flat()
    .map((one) => (isObject(one) ? faultOfFields(one, { of: "hook", fields }) : "it is none"))
    .find((fault) => fault !== undefined);

export function areHooks(value: unknown): value is AgentHooks | readonly AgentHooks[] {
  return faultOf(value) === undefined;
}

export const hooks: FieldCheck = [
  (value) => `an object such as { beforeTool: (call) => … }, or a list: ${faultOf(value)}`,
  areHooks,
];
