import * as z from "zod/mini";
import { finishReasons } from "./enums.ts";
import type { Infer } from "./fields.ts";
import { receiptItemSchema } from "./receipt.ts";

const dollars = z.nullable(z.number());

/** The cost of a model call, in US dollars; `null` if the price is unknown. */
const costSchema = z
  .object({ input: dollars, output: dollars, cache_read: dollars, cache_write: dollars, total: dollars })
  .check(z.meta({ id: "Cost", description: "US dollars; null if the price is unknown." }));
export interface Cost extends Infer<typeof costSchema> {}

/** Tokens of one or more model calls. */
export const usageSchema = z
  .object({
    /** Includes the tokens read from and written to a cache. */
    input: z.int(),
    output: z.int(),
    cache_read: z.int(),
    cache_write: z.int(),
    total_tokens: z.int(),
    cost: costSchema,
    /** Tokens of `output` that the model thought; absent if the provider does not count them. */
    reasoning: z.optional(z.int()),
  })
  .check(z.meta({ id: "Usage", description: "Tokens." }));
export interface Usage extends Infer<typeof usageSchema> {}

/** US dollars per million tokens. */
export interface ModelPrice {
  readonly input: number;
  readonly output: number;
  readonly cache_read?: number | undefined;
  readonly cache_write?: number | undefined;
}

export type { FinishReason } from "./enums.ts";

const providerSchema = z.record(z.string(), z.record(z.string(), z.unknown()));
/** Data that a provider needs again with a part (signatures, cache marks); opaque to kit. */
export type ProviderData = Infer<typeof providerSchema>;

const textSchema = z.object({
  type: z.literal("text"),
  text: z.string(),
  provider: z.optional(providerSchema),
});
export interface TextPart extends Infer<typeof textSchema> {}

const reasoningSchema = z.object({
  type: z.literal("reasoning"),
  text: z.string(),
  provider: z.optional(providerSchema),
});
export interface ReasoningPart extends Infer<typeof reasoningSchema> {}

const imageSchema = z.object({ type: z.literal("image"), media_type: z.string(), data: z.string() });
/** `data` is base64 without a prefix, or an `https:` address. */
export interface ImagePart extends Infer<typeof imageSchema> {}

const fileSchema = z.object({
  type: z.literal("file"),
  media_type: z.string(),
  data: z.string(),
  filename: z.optional(z.string()),
});
/** A document or a recording. `data` is base64 without a prefix, or an `https:` address. */
export interface FilePart extends Infer<typeof fileSchema> {}

const toolCallSchema = z.object({
  type: z.literal("tool_call"),
  tool_call_id: z.string(),
  tool: z.string(),
  /** The arguments as parsed JSON, or the raw text if the model's JSON was invalid. */
  args: z.optional(z.unknown()),
  invalid: z.optional(z.literal(true)),
  provider: z.optional(providerSchema),
});
export interface ToolCallPart extends Infer<typeof toolCallSchema> {}

const toolResultSchema = z.object({
  type: z.literal("tool_result"),
  tool_call_id: z.string(),
  tool: z.string(),
  content: z.array(z.discriminatedUnion("type", [textSchema, imageSchema])),
  is_error: z.boolean(),
  /** Set if the call was interrupted and its effect is unknown. */
  outcome: z.optional(z.literal("unknown")),
  /** The rules, specs and other knowledge that the result shows the model. */
  shows: z.optional(z.array(receiptItemSchema)),
});
export interface ToolResultPart extends Infer<typeof toolResultSchema> {}

const userSchema = z.object({
  role: z.literal("user"),
  content: z.array(z.discriminatedUnion("type", [textSchema, imageSchema, fileSchema])),
  timestamp: z.string(),
  /** Set on messages that kit wrote: guidelines, changed instructions, a summary, a repair request, a request to continue. */
  source: z.optional(z.enum(["guidelines", "instructions", "summary", "repair", "resume", "skill"])),
  /** The client's own id of the message. */
  client_id: z.optional(z.string()),
  /** On the message of a dispatch that joined a running operation: the operation that the dispatch would have had. */
  joined_from: z.optional(z.string()),
  /** The rules and other knowledge that the message shows the model. */
  shows: z.optional(z.array(receiptItemSchema)),
});
export interface UserMessage extends Infer<typeof userSchema> {}

/** A part of a model's answer. */
export const answerPartSchema = z.discriminatedUnion("type", [textSchema, reasoningSchema, toolCallSchema]);

const assistantSchema = z.object({
  role: z.literal("assistant"),
  content: z.array(answerPartSchema),
  timestamp: z.string(),
  model: z.string(),
  usage: usageSchema,
  finish_reason: z.enum(finishReasons),
  /** Set on messages that a backend wrote, not the model. */
  source: z.optional(z.literal("backend")),
});
export interface AssistantMessage extends Infer<typeof assistantSchema> {}

const toolSchema = z.object({
  role: z.literal("tool"),
  content: z.array(toolResultSchema),
  timestamp: z.string(),
});
export interface ToolMessage extends Infer<typeof toolSchema> {}

/** A message of a session's history. */
export const messageSchema = z.discriminatedUnion("role", [userSchema, assistantSchema, toolSchema]);
export type Message = UserMessage | AssistantMessage | ToolMessage;
