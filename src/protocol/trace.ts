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
import { choicesSchema } from "./prompt.ts";
import { receiptItemSchema } from "./receipt.ts";

/** The query of `GET /agents/{name}/{id}/operations`. */
export const operationsQuerySchema = z.strictObject({
  session: nameField
    .optional()
    .meta({ description: "Of this session alone; default: of all sessions of the instance." }),
  limit: limitField.optional().meta({ description: "1 to 1,000; default 50." }),
  before: countField(10 ** 15)
    .optional()
    .meta({ description: "`next_before` of the page before: the operations that began earlier." }),
});
export interface OperationsQuery extends Infer<typeof operationsQuerySchema> {}

/** An operation of an instance, as its events tell of it. */
const operationSchema = z
  .object({
    operation_id: z.string(),
    session: z.string(),
    kind: z.enum(operationKinds),
    message: z.string().optional().meta({ description: "The first 1,000 characters of what it was asked." }),
    first_index: z.int().meta({ description: "Of its first event." }),
    last_index: z.int().optional().meta({ description: "Of its last event; absent while it goes on." }),
    started_at: z.string(),
    duration_ms: z.number().optional(),
    is_error: z.boolean().optional(),
    is_aborted: z.literal(true).optional(),
    usage: z.optional(usageSchema),
    resumed: z
      .literal(true)
      .optional()
      .meta({ description: "It went on here after an interruption: an earlier page has its beginning." }),
    forked_from: z
      .object({ session: z.string(), turn_id: z.string() })
      .optional()
      .meta({ description: "The turn that it does again, of another session." }),
  })
  .meta({ id: "Operation" });
export interface OperationRecord extends Infer<typeof operationSchema> {}

export const operationPageSchema = z
  .object({
    operations: z.array(operationSchema),
    next_before: z.int().optional().meta({ description: "Absent when there are no earlier ones." }),
  })
  .meta({ id: "OperationPage", description: "Newest first, without tasks, which are parts of others." });
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
    .meta({ description: "`first_index` of the operation, which spares the search for it." }),
  after: eventPositionField.optional(),
  limit: countField(1_000).optional().meta({ description: "1 to 1,000; default 100." }),
  types: eventTypesField,
});

export const operationEventsSchema = z
  .object({
    events: z.array(eventSchema),
    next_after: z.int().optional().meta({
      description: "`after` of the next page, which a page with few events may have, too; absent at the end.",
    }),
  })
  .meta({ id: "OperationEvents", description: "Oldest first, those of its tasks among them." });
export interface OperationEvents extends Infer<typeof operationEventsSchema> {}

/** The query of `GET /agents/{name}/{id}/turns/{turn_id}`. */
export const turnQuerySchema = z.strictObject({
  event_index: countField(10 ** 15)
    .optional()
    .meta({ description: "The index of its `turn_request`, which spares the search for it." }),
  limit: limitField.optional().meta({ description: "Messages of the prompt, 1 to 1,000; default 100." }),
  before: countField(2 ** 31 - 1)
    .optional()
    .meta({ description: "`next_before` of the page before: the messages above it." }),
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
  without: z
    .array(textField(1_000).min(1, "must not be empty"), { error: "must be a list of ids and files" })
    .max(100)
    .optional()
    .meta({
      description:
        "Rules to go without: `id` or `file` of items of the turn's receipt of the kinds `guideline` and `instructions`. `authorize` is asked for `agent.omit_rules`.",
    }),
});
export interface ForkBody extends Infer<typeof forkBodySchema> {}

export const forkedSchema = z
  .object({
    status: z.literal("accepted"),
    dispatch_id: z.string(),
    accepted_at: z.string(),
    session: z.string(),
    operation_id: z.string().meta({ description: "Does the turn again, and goes on from there." }),
  })
  .meta({ id: "Forked" });
export interface Forked extends Infer<typeof forkedSchema> {}

/** A message as a model was sent it, or gave it. */
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
    attempt: z.int().meta({ description: "The last one, from 1." }),
    log_position: z
      .int()
      .optional()
      .meta({ description: "How many entries of the log of its session it was asked with." }),
    requested_at: z.string(),
    event_index: z.int().meta({ description: "Of its last `turn_request`." }),
    messages: z
      .array(z.object({ position: z.int(), ...promptMessageSchema.shape }))
      .meta({ description: "A page of the prompt, oldest first; `position` counts from 1." }),
    message_count: z.int(),
    next_before: z.int().optional().meta({ description: "Absent when there are no messages above." }),
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
          "What is not kept: the parts of prompts that were not used for 30 days, and composed ones above 1 MiB; of turns that shorten a history, messages above 4 MiB, and those of older versions of kit.",
      }),
    answer: promptMessageSchema.optional().meta({
      description: "What the model gave, what arrived of it where it broke off; absent while it goes on.",
    }),
    receipt: z.array(receiptItemSchema).optional().meta({
      description:
        "The rules, specs and other knowledge in the model's context. Absent where the turn has no receipt.",
    }),
    receipt_count: z.int().optional().meta({
      description: "How many items the whole receipt has: at most 200 new ones are told in a turn.",
    }),
    finish_reason: z.enum(finishReasons).optional(),
    usage: z.optional(usageSchema),
    duration_ms: z.number().optional(),
    first_chunk_ms: z.number().optional(),
    errors: z
      .array(z.object({ error: eventErrorSchema, will_retry: z.boolean() }))
      .optional()
      .meta({ description: "What failed, one for each attempt." }),
  })
  .meta({ id: "Turn", description: "What a model was sent in a turn, and what it answered." });
export interface TurnDetail extends Infer<typeof turnSchema> {}
