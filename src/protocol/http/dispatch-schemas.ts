import { z } from "zod";
import { type DispatchRecord, type DispatchStatus, dispatchStatuses } from "../dispatch.ts";
import { errorSchema } from "./event-schemas.ts";
import { choiceField, cursorField, limitField, nameField } from "./fields.ts";

/** The query of `GET /dispatches`. */
export interface DispatchQuery {
  readonly status?: DispatchStatus;
  readonly agent?: string;
  readonly instance_id?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

export const dispatchQuerySchema: z.ZodType<DispatchQuery> = z.strictObject({
  status: choiceField(dispatchStatuses)
    .exactOptional()
    .meta({ description: "`failed` are the dead letters." }),
  agent: nameField.exactOptional(),
  instance_id: nameField.exactOptional(),
  limit: limitField.exactOptional().meta({ description: "1 to 1,000; default 50." }),
  cursor: cursorField.exactOptional(),
});

export const dispatchRecordSchema: z.ZodType<DispatchRecord> = z
  .object({
    dispatch_id: z.string(),
    agent: z.string(),
    instance_id: z.string(),
    session: z.string(),
    status: z.enum(dispatchStatuses),
    input: z.unknown(),
    attempts: z.int(),
    idempotency_key: z.string().exactOptional(),
    accepted_at: z.string(),
    next_attempt_at: z.string().exactOptional(),
    started_at: z.string().exactOptional(),
    ended_at: z.string().exactOptional(),
    result: z.unknown().optional(),
    error: errorSchema.exactOptional(),
  })
  .meta({ id: "Dispatch" });

export interface DispatchPage {
  readonly dispatches: readonly DispatchRecord[];
  readonly next_cursor?: string;
}

export const dispatchPageSchema: z.ZodType<DispatchPage> = z
  .object({ dispatches: z.array(dispatchRecordSchema), next_cursor: z.string().exactOptional() })
  .meta({ id: "DispatchPage", description: "Newest first." });

export const cancelledSchema: z.ZodType<{ readonly cancelled: boolean }> = z
  .object({ cancelled: z.boolean().meta({ description: "False when it had already ended." }) })
  .meta({ id: "Cancelled" });
