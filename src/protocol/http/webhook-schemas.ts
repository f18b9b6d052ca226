import { z } from "zod";
import type { DispatchReceipt } from "../dispatch.ts";

/** The reply of `POST /webhooks/{name}` where the webhook's file returns nothing of its own. */
export interface WebhookAccepted {
  readonly status: "accepted";
  readonly dispatches: readonly DispatchReceipt[];
}

export const webhookAcceptedSchema: z.ZodType<WebhookAccepted> = z
  .object({
    status: z.literal("accepted"),
    dispatches: z.array(z.object({ dispatch_id: z.string(), accepted_at: z.string() })),
  })
  .meta({ id: "WebhookAccepted" });
