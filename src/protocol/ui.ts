import { z } from "zod";
import { type Infer, nameField, textField } from "./fields.ts";
import { callerToolsField, sessionField } from "./prompt.ts";

/**
 * A chunk of the AI SDK's UI message stream, version 1, as far as kit sends it. An unknown type would fail the whole answer in
 * a page, so kit's own data travels as `data-…` only.
 */
export type UiChunk =
  | { type: "start"; messageId: string }
  | { type: "start-step" | "finish-step" | "reset-step" }
  | { type: "text-start" | "text-end" | "reasoning-start" | "reasoning-end"; id: string }
  | { type: "text-delta" | "reasoning-delta"; id: string; delta: string }
  | ({ type: "tool-input-start"; toolCallId: string; toolName: string } & UiCallKind)
  | { type: "tool-input-delta"; toolCallId: string; inputTextDelta: string }
  | ({ type: "tool-input-available"; toolCallId: string; toolName: string; input: unknown } & UiCallKind)
  | ({ type: "tool-output-available"; toolCallId: string; output: unknown; preliminary?: true } & UiCallKind)
  | ({ type: "tool-output-error"; toolCallId: string; errorText: string } & UiCallKind)
  | { type: "tool-output-denied"; toolCallId: string }
  | { type: "tool-approval-request"; toolCallId: string; approvalId: string }
  | { type: "tool-approval-response"; approvalId: string; approved: boolean; reason?: string }
  | { type: "source-url"; sourceId: string; url: string; title?: string }
  | { type: "source-document"; sourceId: string; mediaType: string; title: string; filename?: string }
  | { type: "file"; url: string; mediaType: string }
  | { type: "data-task"; id: string; data: UiTask }
  | { type: "data-question"; id: string; data: UiQuestion }
  | { type: "data-joined"; id: string; data: UiJoined }
  | { type: "data-notice"; data: { message: string; retry_in_ms?: number }; transient: true }
  | { type: "message-metadata"; messageMetadata: UiMetadata }
  | { type: "error"; errorText: string }
  | { type: "abort"; reason: string }
  | { type: "finish"; finishReason: "stop" | "tool-calls" | "error" | "other"; messageMetadata?: UiMetadata };

interface UiCallKind {
  /** Absent for a tool of the page: the page runs it. */
  providerExecuted?: true;
  /** Set for the tool of an MCP server, whose name and types the page does not know. */
  dynamic?: true;
}

/** A task of a sub-agent: the data of a part `data-task`. */
export interface UiTask {
  prompt: string;
  agent?: string;
  role?: string;
  state: "running" | "done" | "failed";
}

/** A message of the user that joined the answer: the data of a part `data-joined`, whose id is that of the message. */
export interface UiJoined {
  text: string;
}

/** A question of a running call to a person: the data of a part `data-question`, whose id is that of the approval. */
export interface UiQuestion {
  tool_call_id: string;
  message: string;
  /** The JSON Schema of the answer. */
  schema: unknown;
  state: "waiting" | "answered" | "declined";
}

const metadataSchema = z.looseObject({
  model: z.string().optional(),
  usage: z.unknown().optional(),
  duration_ms: z.number().optional(),
  /** The index of the event up to which the page has the message: the answers to its approvals go on after it. */
  kit_index: z.int().min(0).optional(),
});
export interface UiMetadata extends Infer<typeof metadataSchema> {}

const idField = textField(128).min(1, "must not be empty");

const partSchema = z.looseObject({ type: z.string() });
/** A part of a message; its other fields depend on its type. */
export interface UiPart extends Infer<typeof partSchema> {}

const messageSchema = z.object({
  id: idField,
  role: z.enum(["system", "user", "assistant"]),
  parts: z.array(partSchema),
  metadata: metadataSchema.nullish(),
});
/** A message of the AI SDK. */
export interface UiMessage extends Infer<typeof messageSchema> {}

/** The body that the AI SDK's transports send. Other fields of it are ignored. */
export const uiBodySchema = z.object({
  id: sessionField
    .optional()
    .meta({ description: "The chat: the session of the instance; default `default`." }),
  messages: z
    .array(messageSchema)
    .min(1)
    .meta({ description: "Only the last one is read: the server has the others." }),
  trigger: z.enum(["submit-message", "regenerate-message"]).optional(),
  messageId: idField.nullish().meta({
    description: "With a user's message: the message that is edited, or the answer that is asked for again.",
  }),
  request_id: idField.optional().meta({
    description: "Makes an edit and a regeneration repeatable: the same one is the same work.",
  }),
  tools: callerToolsField.optional().meta({
    description: "Tools that the page runs, as in `POST /agents/{name}/{id}`, for a user's message.",
  }),
});

export const uiStreamQuerySchema = z.strictObject({
  operation_id: nameField
    .optional()
    .meta({ description: "The operation to take up; default: the newest one of the session." }),
});

export const uiMessagesQuerySchema = z.strictObject({
  limit: z.int().min(1).max(200).optional().meta({ description: "Operations per page; default 50." }),
  before: z.int().min(1).optional().meta({ description: "`next_before` of the previous page." }),
});

export const uiMessagesSchema = z
  .object({
    messages: z.array(messageSchema),
    next_before: z.int().optional().meta({ description: "Absent if there are no earlier messages." }),
  })
  .meta({
    id: "UiMessages",
    description:
      "Messages of the AI SDK, oldest first. The answer that runs is left out: its stream has all of it.",
  });
export interface UiMessages extends Infer<typeof uiMessagesSchema> {}

export const uiStopBodySchema = z.strictObject({
  operation_id: idField
    .optional()
    .meta({ description: "`messageId` of the answer to stop; default: all that runs in the session." }),
});

export const uiStoppedSchema = z.object({ stopped: z.boolean() }).meta({ id: "UiStopped" });

export const uiChunkSchema = z
  .looseObject({ type: z.string() })
  .meta({ id: "UiChunk", description: "A chunk of the AI SDK's UI message stream, version 1." });
