import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import * as z from "zod/mini";
import { raceSignal } from "../../base/abort.ts";
import { toSentence } from "../../base/error-text.ts";
import { KitError } from "../../base/kit-error.ts";
import { defined, isRecord } from "../../base/record.ts";
import { faultOf, flag, list, live, string } from "../../base/settings.ts";
import { thrownText } from "../../base/thrown.ts";
import {
  answerPartSchema,
  type ImagePart,
  type TextPart,
  type ToolCallPart,
} from "../../protocol/message.ts";
import type { AgentHooks, HookCall, Refusal } from "../define/hooks.ts";
import { Postponed, willResume } from "../log/suspension.ts";
import { maskAnswer } from "../masked-parts.ts";
import { checkedImagePart } from "../prompt/input-files.ts";
import { maskValue, type SecretMask } from "../secrets.ts";
import type { ModelReply } from "./call-model.ts";
import { failed, isPart, type Outcome } from "./running-call.ts";

/** The hooks that run before and after a turn's model call. */
export interface TurnHooks {
  /** Throws `forbidden` if a hook refuses or throws. */
  before(options: LanguageModelV4CallOptions, model: string): Promise<LanguageModelV4CallOptions>;
  after(reply: ModelReply, model: string): Promise<ModelReply>;
}

/** The hooks that run before and after tool calls. */
export interface ToolHooks {
  /** Returns the call with the arguments of the hooks, or the outcome of a refused call. */
  before(call: ToolCallPart): Promise<ToolCallPart | { readonly refused: Outcome }>;
  after(call: ToolCallPart, outcome: Outcome): Promise<Outcome>;
}

interface HooksAt {
  readonly hooks: readonly AgentHooks[];
  readonly at: HookCall;
  readonly mask: SecretMask | undefined;
}

/** Runs the hooks in order; each gets the result of the previous one. */
export function turnHooks({ hooks, at, mask }: HooksAt): TurnHooks | undefined {
  if (!hooks.some(({ beforeModel, afterModel }) => (beforeModel ?? afterModel) !== undefined))
    return undefined;
  return {
    async before(options, model) {
      let { prompt } = options;
      for (const { beforeModel } of hooks) {
        if (beforeModel === undefined) continue;
        const decision = await ask("beforeModel", at, () => beforeModel({ ...at, model, prompt }));
        if (decision === undefined) continue;
        if ("refuse" in decision)
          throw forbidden(`A hook refused the call of the model: ${decision.refuse}`, mask);
        ({ prompt } = decision);
      }
      return { ...options, prompt };
    },
    async after(reply, model) {
      let content = mask === undefined ? reply.content : maskAnswer(reply.content, mask);
      for (const { afterModel } of hooks) {
        if (afterModel === undefined) continue;
        const decision = await ask("afterModel", at, () => afterModel({ ...at, model, content }));
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
        if (beforeTool === undefined) continue;
        const input = { ...at, tool: call.tool, toolCallId: call.tool_call_id, args: structuredClone(args) };
        const decision = await ask("beforeTool", at, () => beforeTool(input)).catch((error: unknown) => {
          // The call has not run: an operation that resumes asks the hook again.
          if (willResume(at.signal)) throw new Postponed();
          return refusalOf(error, at);
        });
        if (decision === undefined) continue;
        if ("refuse" in decision)
          return { refused: refusedCall("The call was refused, and was not run", decision) };
        // A copy: a hook that keeps its object cannot change what is checked and approved.
        args = JSON.parse(JSON.stringify(decision.args));
      }
      return args === call.args ? call : { ...call, args };
    },
    async after(call, outcome) {
      let result = outcome;
      for (const { afterTool } of hooks) {
        if (afterTool === undefined) continue;
        const parts: readonly (TextPart | ImagePart)[] =
          typeof result.content === "string" ? [{ type: "text", text: result.content }] : result.content;
        const input = {
          ...at,
          tool: call.tool,
          toolCallId: call.tool_call_id,
          args: call.args,
          content: clean(parts),
          isError: result.isError === true,
        };
        const decision = await ask("afterTool", at, () => afterTool(input)).catch((error: unknown) =>
          at.signal.aborted && result.aborted ? undefined : refusalOf(error, at),
        );
        if (decision === undefined) continue;
        const { content, isError, thrown }: Outcome =
          "refuse" in decision
            ? refusedCall("The call was run, and its result is withheld", decision)
            : { content: decision.content, ...defined({ isError: decision.isError ?? result.isError }) };
        result = {
          content,
          ...(isError === true ? { isError } : {}),
          ...defined({ outcome: result.outcome, thrown }),
        };
      }
      return result;
    },
  };
}

function refusedCall(what: string, { refuse, thrown }: Refusal & { readonly thrown?: unknown }): Outcome {
  return { ...failed(`${what}: ${refuse}`), ...defined({ thrown }) };
}

const jsonValue = live<unknown>("JSON", isJson);

function isJson(value: unknown): boolean {
  try {
    return JSON.stringify(value) !== undefined;
  } catch {
    return false;
  }
}

const partTypes: Readonly<Record<string, readonly string[]>> = {
  user: ["text", "file"],
  assistant: ["text", "file", "custom", "reasoning", "reasoning-file", "tool-call", "tool-result"],
  tool: ["tool-result", "tool-approval-response"],
};

/** Whether a value looks like a message of a prompt; the provider checks the details. */
function isPromptMessage(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { role, content } = value;
  if (role === "system") return typeof content === "string";
  const types = typeof role === "string" && Object.hasOwn(partTypes, role) ? partTypes[role] : undefined;
  if (types === undefined || !Array.isArray(content)) return false;
  return content.every((part) => {
    if (!isRecord(part) || !types.some((type) => type === part.type)) return false;
    return (part.type !== "text" && part.type !== "reasoning") || typeof part.text === "string";
  });
}

const promptMessage = live(
  'a message such as { role: "user", content: [{ type: "text", text: "…" }] }',
  isPromptMessage,
);
const answerPart = live(
  'a part of an answer: of type "text", "reasoning" or "tool_call"',
  (value) => z.safeParse(answerPartSchema, value).success && isJson(value),
);
const resultContent = live(
  'a text, or a list of parts such as { type: "text", text: "…" }',
  (value) => typeof value === "string" || (Array.isArray(value) && value.every(isPart)),
);

/** The form of each hook's change. */
const changes = {
  beforeModel: z.object({ prompt: list(promptMessage, "a list of messages") }),
  afterModel: z.object({ content: list(answerPart, "a list of parts") }),
  beforeTool: z.object({ args: jsonValue }),
  afterTool: z.object({ content: resultContent, isError: z.optional(flag) }),
} satisfies Record<keyof AgentHooks, z.ZodMiniType>;

const refusal = z.object({ refuse: string });

/**
 * Asks a hook. Throws `forbidden` if it throws, or returns neither a change nor a refusal; the signal's reason if the
 * operation is aborted first, whatever the hook then does.
 */
async function ask<Decision>(
  name: keyof AgentHooks,
  { signal }: HookCall,
  hook: () => Decision | Promise<Decision>,
): Promise<Extract<Decision, object> | undefined> {
  let decision: unknown;
  try {
    decision = await raceSignal((async () => hook())(), signal);
  } catch (error) {
    signal.throwIfAborted();
    // biome-ignore lint/style/useErrorCause: the cause is among its fields.
    throw new KitError({ code: "forbidden", message: `The hook ${name} failed.`, cause: error });
  }
  if (decision === undefined) return undefined;
  const [field = ""] = Object.keys(changes[name].shape);
  if (!isRecord(decision) || !("refuse" in decision || field in decision))
    throw new KitError({
      code: "forbidden",
      message: `The hook ${name} returned neither a change nor a refusal.`,
      hint: `Return nothing, a change such as { ${field}: … }, or { refuse: "…" }.`,
    });
  const [what, form] = "refuse" in decision ? ["refusal", refusal] : ["change", changes[name]];
  const fault = faultOf(form, decision) ?? (name === "afterTool" ? faultOfImages(decision) : undefined);
  if (fault === undefined) return decision as Extract<Decision, object>;
  throw new KitError({
    code: "forbidden",
    message: `The hook ${name} returned an invalid ${what}.`,
    hint: toSentence(fault),
  });
}

/** Describes an image that no message can contain: it would stay in the history, and fail every later prompt. */
function faultOfImages({ content }: Readonly<Record<string, unknown>>): string | undefined {
  try {
    for (const part of Array.isArray(content) ? content : [])
      if (part.type === "image") checkedImagePart(part);
    return undefined;
  } catch (error) {
    return thrownText(error);
  }
}

/** The refusal of a call whose hook failed; `thrown` is what the hook threw, for the event of the call. */
function refusalOf(error: unknown, { signal }: HookCall): Refusal & { readonly thrown?: unknown } {
  if (signal.aborted) return { refuse: "The operation was aborted before a hook had answered." };
  if (!(error instanceof KitError)) return { refuse: "A hook failed." };
  const { message, hint, cause } = error;
  return { refuse: hint === undefined ? message : `${message} ${hint}`, ...defined({ thrown: cause }) };
}

function forbidden(message: string, mask: SecretMask | undefined): KitError {
  return new KitError({ code: "forbidden", message: mask?.(message) ?? message });
}
