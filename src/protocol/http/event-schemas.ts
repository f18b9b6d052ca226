import { z } from "zod";
import type { ErrorCause } from "../error-cause.ts";
import { type ErrorCode, errorCodes } from "../error-code.ts";
import type { EventBody, EventContext, EventError, EventType, KitEvent, OperationKind } from "../event.ts";
import type { FinishReason } from "../message.ts";
import { prefixSchema, receiptSchema } from "./receipt-schema.ts";
import { usageSchema } from "./usage-schema.ts";

const codes = Object.keys(errorCodes).filter((code): code is ErrorCode => code in errorCodes);

const causeSchema: z.ZodType<ErrorCause> = z
  .object({
    name: z.string().meta({ description: "Its class, or what else was thrown." }),
    message: z.string(),
    path: z.string().exactOptional().meta({ description: "Relative to the project's root." }),
    line: z.int().exactOptional(),
    get cause() {
      return causeSchema.exactOptional();
    },
    get errors() {
      return z.array(causeSchema).exactOptional();
    },
  })
  .meta({ id: "ErrorCause", description: "What the code of the project threw." });

export const errorSchema: z.ZodType<EventError> = z
  .object({ type: z.enum(codes), message: z.string(), cause: causeSchema.exactOptional() })
  .meta({ id: "EventError" });

const context = {
  index: z.int().min(1).meta({ description: "Rises within one stream." }),
  timestamp: z.string(),
  agent: z.string().exactOptional(),
  instance_id: z.string(),
  session: z.string().exactOptional(),
  operation_id: z.string(),
  run_id: z.string().exactOptional(),
  turn_id: z.string().exactOptional(),
  task_id: z.string().exactOptional(),
  parent_operation_id: z.string().exactOptional(),
} satisfies Record<keyof EventContext, z.ZodType>;

const operationKinds = [
  "prompt",
  "stream",
  "skill",
  "task",
  "shell",
  "compact",
  "python",
] as const satisfies readonly OperationKind[];
const finishReasons = [
  "stop",
  "length",
  "content-filter",
  "tool-calls",
  "error",
  "aborted",
  "other",
] as const satisfies readonly FinishReason[];
const purposes = ["agent", "compaction", "repair"] as const;
const reasons = ["threshold", "overflow", "manual"] as const;

const text = z.string();
const ms = z.number();
const flag = z.boolean();
const kind = z.enum(operationKinds);
/** How what can be stopped has ended. */
const ending = {
  is_error: flag,
  is_aborted: z
    .literal(true)
    .exactOptional()
    .meta({ description: "Somebody has stopped it: it has not failed by itself." }),
};
const trace = { traceparent: text.exactOptional(), tracestate: text.exactOptional() };
const step = { step: text, step_id: text.exactOptional() };
const on = z.literal(true).exactOptional();
const toolCall = { tool_call_id: text, tool: text };
const approval = { approval_id: text, ...toolCall };

/** What each type carries beside the common fields: as `EventBody` says it. */
const bodies = {
  operation_start: {
    operation_kind: kind,
    resumed: on,
    step: text.exactOptional(),
    step_id: text.exactOptional(),
    ...trace,
  },
  operation: { operation_kind: kind, duration_ms: ms, ...ending, usage: usageSchema.exactOptional() },
  agent_start: { model: text },
  turn_request: {
    model: text,
    provider: text.exactOptional(),
    purpose: z.enum(purposes),
    attempt: z.int(),
    prefix: prefixSchema.exactOptional(),
    receipt: receiptSchema.exactOptional(),
  },
  turn: {
    model: text,
    usage: usageSchema,
    finish_reason: z.enum(finishReasons),
    purpose: z.enum(purposes),
    response_id: text.exactOptional(),
    response_model: text.exactOptional(),
    first_chunk_ms: ms.exactOptional(),
    duration_ms: ms,
  },
  turn_end: { tool_calls: z.int(), is_error: on, is_aborted: on },
  idle: {},
  abort_requested: {},
  aborted: {},
  error: {
    error: errorSchema,
    will_retry: flag,
    retry_in_ms: ms.exactOptional(),
    next_model: text.exactOptional(),
  },
  text_delta: { text },
  reasoning_delta: { text },
  tool_start: {
    ...toolCall,
    args: z.unknown(),
    mcp: z.object({ server: text, tool: text, transport: z.enum(["pipe", "tcp"]) }).exactOptional(),
  },
  tool_end: {
    ...toolCall,
    result: text,
    is_error: flag,
    cause: causeSchema.exactOptional(),
    duration_ms: ms,
  },
  approval_request: { ...approval, args: z.unknown(), expires_at: text.exactOptional() },
  approval: {
    ...approval,
    approved: flag,
    reason: text.exactOptional(),
    by: text.exactOptional(),
  },
  command_start: { command: text, tool_call_id: text.exactOptional() },
  command_end: {
    command: text,
    exit_code: z.int().nullable(),
    tool_call_id: text.exactOptional(),
    duration_ms: ms,
  },
  task_start: {
    task_id: text,
    tool_call_id: text.exactOptional(),
    role: text.exactOptional(),
    task_agent: text.exactOptional(),
    cwd: text.exactOptional(),
    prompt: text,
  },
  task_end: { task_id: text, is_error: flag, duration_ms: ms },
  gap: { missing_from: z.int(), missing_to: z.int() },
  compaction_start: { reason: z.enum(reasons), tokens_before: z.int() },
  compaction_end: {
    reason: z.enum(reasons),
    tokens_before: z.int(),
    tokens_after: z.int(),
    is_error: flag,
  },
  run_start: { workflow: text, ...trace },
  run_end: {
    workflow: text,
    reason: z.enum(["completed", "failed", "cancelled"]).exactOptional(),
    ...ending,
    error: errorSchema.exactOptional(),
    duration_ms: ms,
  },
  step_start: { ...step, attempt: z.int().exactOptional() },
  step_end: { ...step, ...ending, error: errorSchema.exactOptional(), duration_ms: ms },
  log: { level: z.enum(["info", "warning", "error"]), message: text, data: z.unknown().optional() },
} satisfies { readonly [Type in EventType]: FieldsOf<Type> };

/** A schema for each field of an event's type; a field that is missing here does not compile. */
type FieldsOf<Type extends EventType> = {
  readonly [Field in Exclude<keyof Extract<EventBody, { type: Type }>, "type">]-?: z.ZodType<
    Extract<EventBody, { type: Type }>[Field]
  >;
};

/** Every type of event. */
export const eventTypes: readonly EventType[] = Object.keys(bodies).filter(
  (type): type is EventType => type in bodies,
);

/** An event as streams and pages carry it. Readers skip types that they do not know. */
export const eventSchema: z.ZodType<KitEvent> = z
  .discriminatedUnion("type", unionOf(bodies))
  .meta({ id: "Event" }) as unknown as z.ZodType<KitEvent>;

type Option = z.ZodObject<{ type: z.ZodLiteral<string> } & Record<string, z.ZodType>>;

function unionOf(all: Readonly<Record<string, Readonly<Record<string, z.ZodType>>>>): [Option, ...Option[]] {
  const [first, ...rest] = Object.entries(all).map(([type, fields]) =>
    z.object({ type: z.literal(type), ...context, ...fields }),
  );
  if (first === undefined) throw new TypeError("There is no event.");
  return [first as Option, ...(rest as Option[])];
}
