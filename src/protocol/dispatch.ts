import { z } from "zod";
import { deliveryOutcomes, dispatchStatuses, openDispatchStatuses } from "./enums.ts";
import { eventErrorSchema } from "./errors.ts";
import {
  choiceField,
  cursorField,
  type Infer,
  limitField,
  nameField,
  searchField,
  textField,
  timeField,
  totalField,
  totalQueryField,
} from "./fields.ts";
import { bulkPageShape, checkSelection, failureSchema, idsField } from "./selection.ts";
import { workCauseSchema } from "./work-cause.ts";

export type { DeliveryOutcome, DispatchStatus } from "./enums.ts";

/** The receipt that a sender gets once its input is stored durably. */
export const dispatchReceiptSchema = z.object({
  dispatch_id: z.string(),
  /** ISO 8601. */
  accepted_at: z.string(),
  error: eventErrorSchema.optional().meta({
    description: "The input was sent before with this idempotency key, and has failed for good.",
  }),
});
export interface DispatchReceipt extends Infer<typeof dispatchReceiptSchema> {}

/** An input for a session, from its admission to its end. Times are ISO 8601. */
export const dispatchRecordSchema = z
  .object({
    dispatch_id: z.string(),
    agent: z.string(),
    instance_id: z.string(),
    session: z.string(),
    status: z.enum(dispatchStatuses),
    /** The input that was sent; JSON. */
    input: z.unknown(),
    /** Number of started attempts. */
    attempts: z.int(),
    idempotency_key: z.string().optional(),
    cause: workCauseSchema.optional().meta({
      description:
        "What started the dispatch; absent for a sender without a name, and for dispatches of earlier versions.",
    }),
    accepted_at: z.string(),
    waits_for_approval: z
      .literal(true)
      .optional()
      .meta({ description: "Set while a call of the running work waits for a person's decision." }),
    /** Set while the dispatch waits for its next attempt. */
    next_attempt_at: z.string().optional(),
    started_at: z.string().optional(),
    ended_at: z.string().optional(),
    result: z.unknown().optional(),
    /** The error of the last attempt that failed. */
    error: eventErrorSchema.optional(),
  })
  .meta({ id: "Dispatch" });
export interface DispatchRecord extends Infer<typeof dispatchRecordSchema> {}

const dispatchFilterShape = {
  agent: nameField.optional(),
  instance_id: nameField.optional(),
  search: searchField.optional().meta({
    description: "Only dispatches whose id, agent, instance, input or error contains this text, in any case.",
  }),
  since: timeField
    .optional()
    .meta({ description: "Only dispatches that were accepted at this time or later." }),
  until: timeField.optional().meta({ description: "Only dispatches that were accepted before this time." }),
};

/** The query of `GET /dispatches`. */
export const dispatchQuerySchema = z.strictObject({
  status: choiceField(dispatchStatuses).optional().meta({ description: "`failed` lists the dead letters." }),
  ...dispatchFilterShape,
  count: totalQueryField.optional(),
  limit: limitField.optional().meta({ description: "1 to 1,000; default 50." }),
  cursor: cursorField.optional(),
});
export interface DispatchQuery extends Infer<typeof dispatchQuerySchema> {}

export const dispatchPageSchema = z
  .object({
    dispatches: z.array(dispatchRecordSchema),
    next_cursor: z.string().optional(),
    total: totalField.optional(),
  })
  .meta({ id: "DispatchPage", description: "Newest first." });
export interface DispatchPage extends Infer<typeof dispatchPageSchema> {}

export const cancelledSchema = z
  .object({ cancelled: z.boolean().meta({ description: "False when it had already ended." }) })
  .meta({ id: "Cancelled" });

/** The reply of `POST /webhooks/{name}` unless the webhook's handler returns a reply. */
export const webhookAcceptedSchema = z
  .object({ status: z.literal("accepted"), dispatches: z.array(dispatchReceiptSchema) })
  .meta({ id: "WebhookAccepted" });
export interface WebhookAccepted extends Infer<typeof webhookAcceptedSchema> {}

/** The body of `POST /dispatches/retry`: ids, or a filter of dead letters. */
export const retryManyBodySchema = z
  .strictObject({ ids: idsField.optional(), ...dispatchFilterShape, ...bulkPageShape })
  .superRefine(checkSelection({ needsFilter: false }));
export interface RetryManyBody extends Infer<typeof retryManyBodySchema> {}

/** The body of `POST /dispatches/cancel`: ids, or a filter that says which dispatches. */
export const cancelManyBodySchema = z
  .strictObject({
    ids: idsField.optional(),
    status: choiceField(openDispatchStatuses).optional(),
    ...dispatchFilterShape,
    ...bulkPageShape,
  })
  .superRefine(checkSelection({ needsFilter: true }));
export interface CancelManyBody extends Infer<typeof cancelManyBodySchema> {}

const dispatchFailuresField = z
  .array(z.object({ dispatch_id: z.string(), error: failureSchema }))
  .meta({ description: "Dispatches that could not be changed, and why, such as a full queue." });

export const retriedPageSchema = z
  .object({
    retried: z
      .array(z.string())
      .meta({ description: "Ids of the dispatches that were queued again with a full number of attempts." }),
    failed: dispatchFailuresField,
    next_cursor: z.string().optional().meta({ description: "Set if there are more dead letters to check." }),
  })
  .meta({ id: "RetriedDispatches" });
export interface RetriedPage extends Infer<typeof retriedPageSchema> {}

export const cancelledPageSchema = z
  .object({
    cancelled: z.array(z.string()).meta({ description: "Ids of the dispatches that were cancelled." }),
    failed: dispatchFailuresField,
    next_cursor: z.string().optional().meta({ description: "Set if there are more dispatches to check." }),
  })
  .meta({ id: "CancelledDispatches" });
export interface CancelledPage extends Infer<typeof cancelledPageSchema> {}

/** The query of `GET /deliveries`. */
export const deliveryQuerySchema = z.strictObject({
  webhook: nameField.optional(),
  delivery_id: textField(200)
    .optional()
    .meta({ description: "The id in the `cause` of the work that the delivery started." }),
  outcome: choiceField(deliveryOutcomes)
    .optional()
    .meta({ description: "`failed` lists the deliveries whose senders got a 5xx reply." }),
  limit: limitField.optional().meta({ description: "1 to 1,000; default 50." }),
  cursor: cursorField.optional(),
});
export interface DeliveryQuery extends Infer<typeof deliveryQuerySchema> {}

const deliverySchema = z
  .object({
    record_id: z
      .string()
      .meta({ description: "Identifies this request; a repeated delivery has another id." }),
    webhook: z.string(),
    received_at: z.string(),
    outcome: z.enum(deliveryOutcomes).meta({
      description:
        "`accepted` (2xx), `refused` (4xx) or `failed` (5xx), by the status of the reply; `open` without a reply, also if the process ended before it.",
    }),
    status: z
      .int()
      .optional()
      .meta({ description: "Status of the reply; absent while the delivery is open." }),
    duration_ms: z
      .number()
      .optional()
      .meta({ description: "Time until the reply; absent while the delivery is open." }),
    bytes: z
      .int()
      .meta({ description: "Size of the body; 0 if the delivery was refused before its body was read." }),
    delivery_id: z.string().optional().meta({
      description:
        "The id in the `cause` of the work that the delivery started; absent for an unverified delivery.",
    }),
    node: z
      .string()
      .optional()
      .meta({ description: "The node that received the delivery, if several nodes share the work." }),
    dispatches: z.array(z.string()).meta({ description: "Ids of the dispatches that the delivery started." }),
    runs: z.array(z.string()).meta({ description: "Ids of the runs that the delivery started." }),
    error: z.object({ type: z.string(), message: z.string() }).optional(),
  })
  .meta({ id: "Delivery", description: "A request of a webhook's sender." });
export interface Delivery extends Infer<typeof deliverySchema> {}

export const deliveryPageSchema = z
  .object({ deliveries: z.array(deliverySchema), next_cursor: z.string().optional() })
  .meta({ id: "DeliveryPage", description: "Newest first." });
export interface DeliveryPage extends Infer<typeof deliveryPageSchema> {}
