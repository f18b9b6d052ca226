import { z } from "zod";
import { eventTypes, finishReasons, operationKinds, thinkingLevels } from "./enums.ts";
import { eventErrorSchema } from "./errors.ts";
import { eventSchema } from "./event.ts";
import {
  choiceField,
  countField,
  eventPositionField,
  type Infer,
  limitField,
  nameField,
  textField,
} from "./fields.ts";
import { usageSchema } from "./message.ts";
import { choicesSchema, omittedRulesField } from "./prompt.ts";
import { receiptItemSchema } from "./receipt.ts";

/** The query of `GET /agents/{name}/{id}/operations`. */
export const operationsQuerySchema = z.strictObject({
  session: nameField
    .optional()
    .meta({ description: "Only this session; default: all sessions of the instance." }),
  limit: limitField.optional().meta({ description: "1 to 1,000; default 50." }),
  before: countField(10 ** 15)
    .optional()
    .meta({ description: "`next_before` of the previous page: the operations that started earlier." }),
});
export interface OperationsQuery extends Infer<typeof operationsQuerySchema> {}

/** An operation of an instance, derived from its events. */
const operationSchema = z
  .object({
    operation_id: z.string(),
    session: z.string(),
    kind: z.enum(operationKinds),
    message: z.string().optional().meta({ description: "The first 1,000 characters of the message." }),
    client_id: z.string().optional().meta({ description: "The client's own id of the message." }),
    rewound_before: z.string().optional().meta({
      description:
        "The earlier operation before whose message the session went on: it and those since are left behind.",
    }),
    first_index: z.int().meta({ description: "Index of its first event." }),
    last_index: z
      .int()
      .optional()
      .meta({ description: "Index of its last event; absent while the operation is active." }),
    started_at: z.string(),
    duration_ms: z.number().optional(),
    status: z.enum(["working", "waiting", "retrying", "completed", "failed", "aborted"]).meta({
      description:
        "`waiting`: a call of the operation, or of one of its tasks, waits for a person's decision; `retrying`: the operation has failed, and the engine tries it again.",
    }),
    is_error: z.boolean().optional(),
    is_aborted: z.literal(true).optional(),
    error: eventErrorSchema
      .optional()
      .meta({ description: "Of a failed operation, or of its last attempt." }),
    attempts: z.int().optional().meta({ description: "Attempts of the engine; absent for one." }),
    dispatch_id: z
      .string()
      .optional()
      .meta({ description: "The dispatched input that the operation works on." }),
    usage: z.optional(usageSchema),
    resumed: z.literal(true).optional().meta({
      description: "The operation resumed here after an interruption; an earlier page holds its start.",
    }),
    forked_from: z
      .object({ session: z.string(), turn_id: z.string().optional(), before: z.string().optional() })
      .optional()
      .meta({
        description:
          "The turn of another session that the operation repeats, or the operation of that session before which it goes on.",
      }),
  })
  .meta({ id: "Operation" });
export interface OperationRecord extends Infer<typeof operationSchema> {}

export const operationPageSchema = z
  .object({
    operations: z.array(operationSchema),
    next_before: z.int().optional().meta({ description: "Absent if there are no earlier operations." }),
  })
  .meta({
    id: "OperationPage",
    description: "Newest first, without tasks, which belong to other operations.",
  });
export interface OperationPage extends Infer<typeof operationPageSchema> {}

const eventTypesField = textField(1_000)
  .transform((types): unknown[] => types.split(","))
  .pipe(z.array(choiceField(eventTypes)))
  .optional()
  .meta({ description: "Event types, joined by commas; without it, all." });

/** The query of `GET /agents/{name}/{id}/operations/{operation_id}/events`. */
export const operationEventsQuerySchema = z.strictObject({
  first_index: countField(10 ** 15)
    .optional()
    .meta({ description: "`first_index` of the operation; saves the search for it." }),
  after: eventPositionField.optional(),
  limit: countField(1_000).optional().meta({ description: "1 to 1,000; default 100." }),
  types: eventTypesField,
});

export const operationEventsSchema = z
  .object({
    events: z.array(eventSchema),
    next_after: z.int().optional().meta({
      description:
        "`after` of the next page; absent at the end. A page with fewer events than `limit` need not be the last.",
    }),
  })
  .meta({ id: "OperationEvents", description: "Oldest first, including the events of its tasks." });
export interface OperationEvents extends Infer<typeof operationEventsSchema> {}

/** The query of `GET /agents/{name}/{id}/turns/{turn_id}`. */
export const turnQuerySchema = z.strictObject({
  event_index: countField(10 ** 15)
    .optional()
    .meta({ description: "The index of the turn's `turn_request`; saves the search for it." }),
  limit: limitField.optional().meta({ description: "Messages of the prompt, 1 to 1,000; default 100." }),
  before: countField(2 ** 31 - 1)
    .optional()
    .meta({ description: "`next_before` of the previous page: the messages before it." }),
});
export interface TurnQuery extends Infer<typeof turnQuerySchema> {}

/** The body of `POST /agents/{name}/{id}/turns/{turn_id}/fork`. */
export const forkBodySchema = z.strictObject({
  session: nameField
    .optional()
    .meta({ description: "The new session; it must not exist. Default: `fork-` and an id." }),
  model: choicesSchema.shape.model,
  thinking_level: choiceField(thinkingLevels).optional(),
  role: textField(200).min(1, "must not be empty").optional(),
  without: omittedRulesField.optional().meta({
    description:
      "Rules of the project to leave out: files, and sections such as `AGENTS.md#money`. Requires the action `agent.omit_rules`.",
  }),
});
export interface ForkBody extends Infer<typeof forkBodySchema> {}

export const forkedSchema = z
  .object({
    status: z.literal("accepted"),
    dispatch_id: z.string(),
    accepted_at: z.string(),
    session: z.string(),
    operation_id: z
      .string()
      .meta({ description: "The operation that repeats the turn and continues from there." }),
  })
  .meta({ id: "Forked" });
export interface Forked extends Infer<typeof forkedSchema> {}

/** A message that was sent to a model, or that the model answered. */
const promptMessageSchema = z.object({
  role: z.enum(["system", "user", "assistant", "tool"]),
  content: z.array(z.looseObject({ type: z.string() })),
});
export interface PromptMessage extends Infer<typeof promptMessageSchema> {}

/** The exact request and answer of a turn. */
export const turnSchema = z
  .object({
    turn_id: z.string(),
    operation_id: z.string(),
    session: z.string(),
    model: z.string(),
    provider: z.string().optional(),
    purpose: z.enum(["agent", "compaction", "repair"]),
    attempt: z.int().meta({ description: "The last attempt, from 1." }),
    log_position: z
      .int()
      .optional()
      .meta({ description: "Number of entries of the session's log in the prompt." }),
    requested_at: z.string(),
    event_index: z.int().meta({ description: "Index of the turn's last `turn_request`." }),
    messages: z
      .array(z.object({ position: z.int(), ...promptMessageSchema.shape }))
      .meta({ description: "A page of the prompt, oldest first; `position` counts from 1." }),
    message_count: z.int(),
    next_before: z.int().optional().meta({ description: "Absent if there are no earlier messages." }),
    tools: z
      .array(z.object({ name: z.string(), description: z.string().optional(), input_schema: z.unknown() }))
      .optional(),
    settings: z
      .record(z.string(), z.unknown())
      .optional()
      .meta({ description: "Temperature, reasoning and the like; without headers." }),
    missing: z
      .array(choiceField(["system", "tools", "messages", "answer"]))
      .optional()
      .meta({
        description:
          "Parts that are not stored: parts of prompts that were not used for 30 days, and composed parts above 1 MiB; in turns that compact a history, messages above 4 MiB and those of older versions of kit.",
      }),
    answer: promptMessageSchema.optional().meta({
      description: "The model's answer; what arrived of it if it broke off; absent while the turn is active.",
    }),
    receipt: z.array(receiptItemSchema).optional().meta({
      description:
        "The rules, specs and other knowledge in the model's context. Absent if the turn has no receipt.",
    }),
    receipt_count: z.int().optional().meta({
      description: "Number of items in the whole receipt: a turn lists at most 200 new ones.",
    }),
    left_out: z.array(z.string()).optional().meta({
      description: "Rules of the project that the session leaves out. Absent for none.",
    }),
    finish_reason: z.enum(finishReasons).optional(),
    usage: z.optional(usageSchema),
    duration_ms: z.number().optional(),
    first_chunk_ms: z.number().optional(),
    errors: z
      .array(z.object({ error: eventErrorSchema, will_retry: z.boolean() }))
      .optional()
      .meta({ description: "The errors of failed attempts, one for each." }),
  })
  .meta({ id: "Turn", description: "The exact request and answer of a turn." });
export interface TurnDetail extends Infer<typeof turnSchema> {}
