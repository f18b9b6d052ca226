import { z } from "zod";
import { callKinds, type eventTypes, finishReasons, operationKinds } from "./enums.ts";
import { errorCauseSchema, eventErrorSchema } from "./errors.ts";
import type { Infer } from "./fields.ts";
import { usageSchema } from "./message.ts";
import { prefixSchema, receiptSchema } from "./receipt.ts";
import { repositoryStateSchema } from "./repository.ts";

export type { OperationKind } from "./enums.ts";
export type { EventError } from "./errors.ts";

const context = {
  /** Counts from 1. */
  index: z.int().min(1).meta({ description: "Increases within a stream." }),
  /** ISO 8601, UTC, milliseconds. */
  timestamp: z.string(),
  /** Absent on the events of the run itself: a run belongs to no agent. */
  agent: z.string().optional(),
  /** The run's id, on the events of the run itself. */
  instance_id: z.string(),
  session: z.string().optional(),
  /** The run's id, on the events of the run itself. */
  operation_id: z.string(),
  run_id: z.string().optional(),
  turn_id: z.string().optional(),
  task_id: z.string().optional(),
  parent_operation_id: z.string().optional(),
};

/** The fields that every event can carry. */
export interface EventContext extends Infer<z.ZodObject<typeof context>> {}

/** Creates the schema of an event: the fields of its type and the common fields. */
function event<const Type extends (typeof eventTypes)[number], Fields extends z.ZodRawShape>(
  type: Type,
  fields: Fields,
) {
  return z.object({ type: z.literal(type), ...context }).extend(fields);
}

const text = z.string();
const ms = z.number();
const set = z.literal(true).optional();
const kind = z.enum(operationKinds);
/** Why a model is called: for the work, to shorten the history, or to repair a typed output. */
const turnPurposeSchema = z.enum(["agent", "compaction", "repair"]);
/** The settings of a model call, under kit's names; those that are not set are absent. */
const callSettingsSchema = z.object({
  temperature: z.number().optional(),
  top_p: z.number().optional(),
  top_k: z.number().optional(),
  frequency_penalty: z.number().optional(),
  presence_penalty: z.number().optional(),
  seed: z.int().optional(),
  max_output_tokens: z.int().optional(),
  stop_sequences: z.array(z.string()).optional(),
  /** How much the model thinks: `none`, `low`, `high`. */
  reasoning: z.string().optional(),
  /** Set where the provider is asked for JSON instead of text. */
  output: z.literal("json").optional(),
});
const compactionReasonSchema = z.enum(["threshold", "overflow", "manual"]);
/** The server and tool of an MCP call. */
const mcpOriginSchema = z.object({
  /** The server's name in the configuration. */
  server: text,
  /** The name that the server uses for the tool. */
  tool: text,
  /** `pipe` for a process's streams, `tcp` for HTTP. */
  transport: z.enum(["pipe", "tcp"]),
});
const ending = {
  is_error: z.boolean(),
  /** Set only together with `is_error`. */
  is_aborted: set.meta({ description: "Aborted by a caller; the work itself did not fail." }),
};
const trace = { traceparent: text.optional(), tracestate: text.optional() };
const step = {
  step: text,
  /** Unique within the run, where several steps can share a name; the same in each attempt. */
  step_id: text.optional(),
};
const toolCall = { tool_call_id: text, tool: text };
const approval = { approval_id: text, ...toolCall };

/** An event of a stream or a page. Readers skip unknown types. */
export const eventSchema = z
  .discriminatedUnion("type", [
    event("operation_start", {
      operation_kind: kind,
      /** Set if an interrupted operation resumes, or already had its answer. */
      resumed: set,
      /** The engine's attempt at the operation, from 2; absent for the first. */
      attempt: z.int().optional(),
      /** The dispatched input that the operation works on. */
      dispatch_id: text.optional(),
      /** The user's text. Absent if the operation has none, and in older logs. */
      message: text.optional(),
      /** The client's own id of the message. */
      client_id: text.optional(),
      /** The session goes on before the message of this earlier operation. */
      rewound_before: text.optional(),
      /** Number of images sent with the message; the history holds them. Absent for none. */
      images: z.int().optional(),
      /** The repository in which the operation works. Absent outside of Git, and in older logs. */
      repository: z.optional(repositoryStateSchema),
      /** For a fork: the turn of another session that it repeats, or the operation of that session before which it goes on. */
      forked_from: z.object({ session: text, turn_id: text.optional(), before: text.optional() }).optional(),
      /** The step of the run that started the operation. */
      step: text.optional(),
      step_id: text.optional(),
      ...trace,
    }),
    event("operation", { operation_kind: kind, duration_ms: ms, ...ending, usage: z.optional(usageSchema) }),
    event("agent_start", { model: text }),
    event("turn_request", {
      model: text,
      /** The provider's name in the AI SDK: `openai.responses`. Absent in older logs. */
      provider: text.optional(),
      purpose: turnPurposeSchema,
      /** From 1; above 1 for a retry of the same turn, which discards the deltas of the previous attempt. */
      attempt: z.int(),
      /** Absent for calls other than the session's own prompt, such as a summary. */
      prefix: z.optional(prefixSchema),
      /** The content in the model's context: rules, specs, instructions, skills, memories. Absent whenever `prefix` is. */
      receipt: z.optional(receiptSchema),
      /**
       * Key, in the session store, of the system prompt, the tools, the settings and those messages that no log holds.
       * Absent if the store keeps none.
       */
      head: text.optional(),
      /** Number of entries of the session's log in the prompt. */
      log_position: z.int().optional(),
      /** Absent if none is set, and in older logs. */
      settings: callSettingsSchema.optional(),
      /** Set if a summary replaces the older messages of the prompt. */
      compacted: set,
    }),
    event("turn", {
      model: text,
      usage: usageSchema,
      finish_reason: z.enum(finishReasons),
      purpose: turnPurposeSchema,
      /** The provider's id of the answer, if it reports one. */
      response_id: text.optional(),
      /** The model that answered, if the provider reports it. */
      response_model: text.optional(),
      /** The position of the answer in the session's log, from 1. */
      log_position: z.int().optional(),
      /** Key of the answer in the session store. Set if no log holds the answer: in turns that compact a history. */
      answer: text.optional(),
      /** Time until the first chunk of the answer. */
      first_chunk_ms: ms.optional(),
      duration_ms: ms,
    }),
    // Ends every turn, also a failed or aborted one; only a turn that resumes later has none.
    event("turn_end", { tool_calls: z.int(), is_error: set, is_aborted: set }),
    event("idle", {}),
    event("abort_requested", {}),
    event("aborted", {}),
    // The message of a dispatch joins the operation, and its next model call reads it.
    event("joined", {
      message: text,
      client_id: text.optional(),
      /** Number of images sent with the message. Absent for none. */
      images: z.int().optional(),
      /** The operation that the receipt of the dispatch names. */
      joined_from: text,
      dispatch_id: text,
    }),
    event("error", {
      error: eventErrorSchema,
      /** Whether kit tries again: the model call (with `turn_id`), or the engine the operation, which then starts with the next `attempt`. */
      will_retry: z.boolean(),
      /** Set if there is a delay before the retry. */
      retry_in_ms: ms.optional(),
      /** The model that is tried next, if the profile names several. */
      next_model: text.optional(),
    }),
    event("text_delta", {
      text,
      /**
       * For a typed answer: its value so far, including this delta; each replaces the previous one. Not yet checked by the
       * schema. Not on every delta: a large value is sent each time it has grown by a sixteenth.
       */
      partial_result: z.unknown().optional(),
    }),
    event("reasoning_delta", { text }),
    // The model writes the arguments of a call, as JSON, whose `tool_start` follows. No log keeps it: only who reads at that moment gets it.
    event("tool_args_delta", {
      ...toolCall,
      text,
      /** The characters of the arguments before this piece: who comes late, or falls behind, misses some. */
      offset: z.int(),
      /** As in `tool_start`. */
      kind: z.literal("caller").optional(),
    }),
    // A source of the answer of the turn `turn_id`. It has a `url`, or is a document without one.
    event("source", {
      source_id: text,
      /** `http:` or `https:`. */
      url: text.optional(),
      title: text.optional(),
      media_type: text.optional(),
      filename: text.optional(),
    }),
    // A file that the model has made, such as a picture.
    event("file", {
      media_type: text,
      /** Base64, or an `https:` address. */
      data: text,
    }),
    event("tool_start", {
      ...toolCall,
      args: z.unknown(),
      /** Set for the tool of an MCP server. */
      mcp: mcpOriginSchema.optional(),
      /** Set for a tool of the caller, who answers the call. */
      kind: z.literal("caller").optional(),
    }),
    // Emitted between the call's `tool_start` and `tool_end`; the model does not see it.
    event("tool_progress", { ...toolCall, progress: z.unknown() }),
    event("tool_end", {
      ...toolCall,
      result: text,
      is_error: z.boolean(),
      /** The error that the tool threw, and its place in the project. */
      cause: errorCauseSchema.optional(),
      duration_ms: ms,
    }),
    // The call waits for a decision, or for its answer. Emitted between the call's `tool_start` and `tool_end`.
    event("approval_request", {
      ...approval,
      args: z.unknown(),
      /** Absent for a call that needs approval. */
      kind: z.enum(callKinds).optional(),
      /** The question of a running call, and the JSON Schema of its answer. */
      message: text.optional(),
      schema: z.record(z.string(), z.unknown()).optional(),
      /** ISO 8601; absent if the call waits without a limit. */
      expires_at: text.optional(),
    }),
    event("approval", {
      ...approval,
      approved: z.boolean(),
      reason: text.optional(),
      by: text.optional(),
      /** The approver's arguments, which replace the model's. */
      args: z.unknown().optional(),
    }),
    event("command_start", { command: text, tool_call_id: text.optional() }),
    event("command_end", {
      command: text,
      exit_code: z.int().nullable(),
      tool_call_id: text.optional(),
      duration_ms: ms,
    }),
    event("task_start", {
      /** The task that starts; its own events carry the same id. */
      task_id: text,
      /** The `task` tool call, in the turn `turn_id`, that starts the task. */
      tool_call_id: text.optional(),
      role: text.optional(),
      task_agent: text.optional(),
      cwd: text.optional(),
      prompt: text,
    }),
    event("task_end", { task_id: text, is_error: z.boolean(), duration_ms: ms }),
    // The reader asked for events that retention has removed. The gap's own index is that of the last removed event.
    event("gap", { missing_from: z.int(), missing_to: z.int() }),
    event("compaction_start", { reason: compactionReasonSchema, tokens_before: z.int() }),
    event("compaction_end", {
      reason: compactionReasonSchema,
      tokens_before: z.int(),
      tokens_after: z.int(),
      is_error: z.boolean(),
    }),
    event("run_start", { workflow: text, ...trace }),
    event("run_end", {
      workflow: text,
      /** The status of the run's record. Absent in older logs. */
      reason: z.enum(["completed", "failed", "cancelled"]).optional(),
      ...ending,
      error: eventErrorSchema.optional(),
      duration_ms: ms,
    }),
    event("step_start", {
      ...step,
      /** From 1. */
      attempt: z.int().optional(),
    }),
    event("step_end", { ...step, ...ending, error: eventErrorSchema.optional(), duration_ms: ms }),
    event("log", {
      level: z.enum(["info", "warning", "error"]),
      message: text,
      data: z.unknown().optional(),
    }),
  ])
  .meta({ id: "Event" });
export type KitEvent = Infer<typeof eventSchema>;
export type EventType = KitEvent["type"];

/** The fields of each type without the common ones. */
export type EventBody = BodyOf<KitEvent>;
/** Keeps a common field that the type requires, such as `task_id` of `task_start`. */
type BodyOf<Event> = {
  [Field in keyof Event as Field extends keyof EventContext
    ? EventContext[Field] extends Event[Field]
      ? never
      : Field
    : Field]: Event[Field];
};

export type TurnPurpose = Infer<typeof turnPurposeSchema>;
export interface EventCallSettings extends Infer<typeof callSettingsSchema> {}
export type CompactionReason = Infer<typeof compactionReasonSchema>;
export interface McpOrigin extends Infer<typeof mcpOriginSchema> {}
