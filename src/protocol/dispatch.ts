import { z } from "zod";
import { deliveryOutcomes, dispatchStatuses } from "./enums.ts";
import { eventErrorSchema } from "./errors.ts";
import { choiceField, cursorField, type Infer, limitField, nameField, textField } from "./fields.ts";
import { workCauseSchema } from "./work-cause.ts";

export type { DeliveryOutcome, DispatchStatus } from "./enums.ts";

/** The receipt that a sender gets once its input cannot be lost any more. */
export const dispatchReceiptSchema = z.object({
  dispatch_id: z.string(),
  /** ISO 8601. */
  accepted_at: z.string(),
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
    /** The input as it was sent, JSON. */
    input: z.unknown(),
    /** Attempts that were begun. */
    attempts: z.int(),
    idempotency_key: z.string().optional(),
    cause: workCauseSchema.optional().meta({
      description:
        "What began it; absent for a sender without a name, and for dispatches of earlier versions.",
    }),
    accepted_at: z.string(),
    /** Set while it waits to be tried again. */
    next_attempt_at: z.string().optional(),
    started_at: z.string().optional(),
    ended_at: z.string().optional(),
    result: z.unknown().optional(),
    /** The error of the last attempt that failed. */
    error: eventErrorSchema.optional(),
  })
  .meta({ id: "Dispatch" });
export interface DispatchRecord extends Infer<typeof dispatchRecordSchema> {}

/** The query of `GET /dispatches`. */
export const dispatchQuerySchema = z.strictObject({
  status: choiceField(dispatchStatuses).optional().meta({ description: "`failed` are the dead letters." }),
  agent: nameField.optional(),
  instance_id: nameField.optional(),
  limit: limitField.optional().meta({ description: "1 to 1,000; default 50." }),
  cursor: cursorField.optional(),
});
export interface DispatchQuery extends Infer<typeof dispatchQuerySchema> {}

export const dispatchPageSchema = z
  .object({ dispatches: z.array(dispatchRecordSchema), next_cursor: z.string().optional() })
  .meta({ id: "DispatchPage", description: "Newest first." });
export interface DispatchPage extends Infer<typeof dispatchPageSchema> {}

export const cancelledSchema = z
  .object({ cancelled: z.boolean().meta({ description: "False when it had already ended." }) })
  .meta({ id: "Cancelled" });

/** The reply of `POST /webhooks/{name}` where the webhook's file returns nothing of its own. */
export const webhookAcceptedSchema = z
  .object({ status: z.literal("accepted"), dispatches: z.array(dispatchReceiptSchema) })
  .meta({ id: "WebhookAccepted" });
export interface WebhookAccepted extends Infer<typeof webhookAcceptedSchema> {}

/** The body of `POST /dispatches/retry`. */
export const retryManyBodySchema = z.strictObject({
  agent: nameField.optional(),
  instance_id: nameField.optional(),
  limit: limitField.optional().meta({ description: "Dead letters to look at, 1 to 1,000; default 100." }),
  cursor: cursorField.optional(),
});
export interface RetryManyBody extends Infer<typeof retryManyBodySchema> {}

export const retriedPageSchema = z
  .object({
    retried: z.array(z.string()).meta({ description: "The ids of those that have their attempts again." }),
    failed: z
      .array(
        z.object({
          dispatch_id: z.string(),
          error: z.object({ type: z.string(), message: z.string() }),
        }),
      )
      .meta({ description: "Could not be retried, and why: a line that is full, for one." }),
    next_cursor: z.string().optional().meta({ description: "There are more to look at." }),
  })
  .meta({ id: "RetriedDispatches" });
export interface RetriedPage extends Infer<typeof retriedPageSchema> {}

/** The query of `GET /deliveries`. */
export const deliveryQuerySchema = z.strictObject({
  webhook: nameField.optional(),
  delivery_id: textField(200).optional().meta({ description: "As the `cause` of what it began names it." }),
  outcome: choiceField(deliveryOutcomes)
    .optional()
    .meta({ description: "`failed` are those whose senders were told 5xx." }),
  limit: limitField.optional().meta({ description: "1 to 1,000; default 50." }),
  cursor: cursorField.optional(),
});
export interface DeliveryQuery extends Infer<typeof deliveryQuerySchema> {}

const deliverySchema = z
  .object({
    record_id: z
      .string()
      .meta({ description: "Names this request; a delivery that comes again has another." }),
    webhook: z.string(),
    received_at: z.string(),
    outcome: z.enum(deliveryOutcomes).meta({
      description:
        "`accepted` (2xx), `refused` (4xx) or `failed` (5xx), by its reply; `open` while there is none, also where the process ended before it.",
    }),
    status: z
      .int()
      .optional()
      .meta({ description: "Of the reply that its sender got; absent where it is open." }),
    duration_ms: z.number().optional().meta({ description: "Until the reply; absent where it is open." }),
    bytes: z.int().meta({ description: "Of the body; 0 where it was refused before it was read." }),
    delivery_id: z
      .string()
      .optional()
      .meta({ description: "As the `cause` of what it began names it; absent before it is verified." }),
    node: z
      .string()
      .optional()
      .meta({ description: "The node that received it, where several share the work." }),
    dispatches: z.array(z.string()).meta({ description: "Ids of what it was handed over as." }),
    runs: z.array(z.string()).meta({ description: "Ids of the runs that it began." }),
    error: z.object({ type: z.string(), message: z.string() }).optional(),
  })
  .meta({ id: "Delivery", description: "A request of a webhook's sender." });
export interface Delivery extends Infer<typeof deliverySchema> {}

export const deliveryPageSchema = z
  .object({ deliveries: z.array(deliverySchema), next_cursor: z.string().optional() })
  .meta({ id: "DeliveryPage", description: "Newest first." });
export interface DeliveryPage extends Infer<typeof deliveryPageSchema> {}
