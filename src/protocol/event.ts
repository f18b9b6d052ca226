import { z } from "zod";
import { type eventTypes, finishReasons, operationKinds } from "./enums.ts";
import { errorCauseSchema, eventErrorSchema } from "./errors.ts";
import type { Infer } from "./fields.ts";
import { usageSchema } from "./message.ts";
import { prefixSchema, receiptSchema } from "./receipt.ts";

export type { OperationKind } from "./enums.ts";
export type { EventError } from "./errors.ts";

const context = {
  /** Counts from 1. */
  index: z.int().min(1).meta({ description: "Rises within one stream." }),
  /** ISO 8601, UTC, milliseconds. */
  timestamp: z.string(),
  /** Absent on the events of a run itself, which belongs to no agent. */
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
const compactionReasonSchema = z.enum(["threshold", "overflow", "manual"]);
/** Where a call of an MCP server's tool goes. */
const mcpOriginSchema = z.object({
  /** The server's name in the configuration. */
  server: text,
  /** The tool as the server names it. */
  tool: text,
  /** A process's streams, or HTTP. */
  transport: z.enum(["pipe", "tcp"]),
});
const ending = {
  is_error: z.boolean(),
  /** Goes with `is_error`. */
  is_aborted: set.meta({ description: "A caller has stopped it: it has not failed by itself." }),
};
const trace = { traceparent: text.optional(), tracestate: text.optional() };
const step = {
  step: text,
  /** Names the step among those of its run, which may have the same name: the same in each attempt. */
  step_id: text.optional(),
};
const toolCall = { tool_call_id: text, tool: text };
const approval = { approval_id: text, ...toolCall };

/** An event as streams and pages carry it. Readers skip types that they do not know. */
export const eventSchema = z
  .discriminatedUnion("type", [
    event("operation_start", {
      operation_kind: kind,
      /** Set where an interrupted operation goes on, or had its answer already. */
      resumed: set,
      /** The text that the user has sent. Absent where the operation has none, and in older logs. */
      message: text.optional(),
      /** How many pictures were sent with it: they are in the history. Absent where there were none. */
      images: z.int().optional(),
      /** The turn of another session that it does again, where it is a fork. */
      forked_from: z.object({ session: text, turn_id: text }).optional(),
      /** The step of the run that asked for it. */
      step: text.optional(),
      step_id: text.optional(),
      ...trace,
    }),
    event("operation", { operation_kind: kind, duration_ms: ms, ...ending, usage: z.optional(usageSchema) }),
    event("agent_start", { model: text }),
    event("turn_request", {
      model: text,
      /**
       * The service that serves the model, as its package names it: `openai.responses`. Absent in older logs.
       */
      provider: text.optional(),
      purpose: turnPurposeSchema,
      /** From 1; above 1 for a retry of the same turn. Deltas of the attempt before are void. */
      attempt: z.int(),
      /** Absent where the call is not of the session's own prompt, such as one that sums it up. */
      prefix: z.optional(prefixSchema),
      /** The content in the model's context: rules, specs, instructions, skills, memories. Absent likewise. */
      receipt: z.optional(receiptSchema),
      /** Names the system prompt, tools and settings, and messages that no log holds, as the session store keeps them. Absent where it keeps none. */
      head: text.optional(),
      /** How many entries of the session's log the prompt is made of. */
      log_position: z.int().optional(),
    }),
    event("turn", {
      model: text,
      usage: usageSchema,
      finish_reason: z.enum(finishReasons),
      purpose: turnPurposeSchema,
      /** The provider's id of the answer, where the provider says so. */
      response_id: text.optional(),
      /** The model that gave the answer, where the provider says so. */
      response_model: text.optional(),
      /** The entry of the session's log that holds the answer, from 1. */
      log_position: z.int().optional(),
      /** Names the answer, as the session store keeps it. Set where no log holds it: in turns that shorten a history. */
      answer: text.optional(),
      /** Until the first piece of the answer. */
      first_chunk_ms: ms.optional(),
      duration_ms: ms,
    }),
    // Ends every turn, a failed or stopped one too; only a turn that goes on later has none.
    event("turn_end", { tool_calls: z.int(), is_error: set, is_aborted: set }),
    event("idle", {}),
    event("abort_requested", {}),
    event("aborted", {}),
    event("error", {
      error: eventErrorSchema,
      will_retry: z.boolean(),
      /** Set where it waits before it tries again. */
      retry_in_ms: ms.optional(),
      /** The model that is asked instead, where several are named. */
      next_model: text.optional(),
    }),
    event("text_delta", {
      text,
      /**
       * Where the answer is typed: its value as far as it has come, with this delta; each replaces the one before. Its schema
       * has not checked it. Not on every delta: a large value is sent when it has grown by a sixteenth.
       */
      partial_result: z.unknown().optional(),
    }),
    event("reasoning_delta", { text }),
    event("tool_start", {
      ...toolCall,
      args: z.unknown(),
      /** Set where the tool is an MCP server's. */
      mcp: mcpOriginSchema.optional(),
    }),
    // Stands between the call's `tool_start` and `tool_end`; the model does not see it.
    event("tool_progress", { ...toolCall, progress: z.unknown() }),
    event("tool_end", {
      ...toolCall,
      result: text,
      is_error: z.boolean(),
      /** The error that a tool threw, and its place in the project. */
      cause: errorCauseSchema.optional(),
      duration_ms: ms,
    }),
    // The call waits for an approval decision. Stands between the call's `tool_start` and `tool_end`.
    event("approval_request", {
      ...approval,
      args: z.unknown(),
      /** ISO 8601; absent where it waits as long as it takes. */
      expires_at: text.optional(),
    }),
    event("approval", {
      ...approval,
      approved: z.boolean(),
      reason: text.optional(),
      by: text.optional(),
      /** The arguments that the approver gave in the place of the model's. */
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
      /** The task that starts: its own events have the same. */
      task_id: text,
      /** The call of the `task` tool that asks for it, of the turn in `turn_id`. */
      tool_call_id: text.optional(),
      role: text.optional(),
      task_agent: text.optional(),
      cwd: text.optional(),
      prompt: text,
    }),
    event("task_end", { task_id: text, is_error: z.boolean(), duration_ms: ms }),
    // A reader asked for events behind retention: these were removed. Its own index is the last of them.
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
      /** As the record's status says it. Absent in older logs. */
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

/** The fields that each type carries beside the common ones. */
export type EventBody = BodyOf<KitEvent>;
/** A field that the type demands and others may have, such as the task of `task_start`, is the type's own. */
type BodyOf<Event> = {
  [Field in keyof Event as Field extends keyof EventContext
    ? EventContext[Field] extends Event[Field]
      ? never
      : Field
    : Field]: Event[Field];
};

export type TurnPurpose = Infer<typeof turnPurposeSchema>;
export type CompactionReason = Infer<typeof compactionReasonSchema>;
export interface McpOrigin extends Infer<typeof mcpOriginSchema> {}
