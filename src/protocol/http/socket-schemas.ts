import { z } from "zod";
import type { ClientFrame } from "../socket-frame.ts";
import { promptFields, sessionField } from "./agent-schemas.ts";
import { approvalFields } from "./approval-schemas.ts";
import { needed, textField } from "./fields.ts";

const requestId = textField(128)
  .min(1, "must not be empty")
  .meta({ description: "Of the client's choice; what belongs to the request carries it." });

/** Ignored where they are none, as headers are. */
const traceField = z.string().optional().catch(undefined);
const trace = { traceparent: traceField, tracestate: traceField };

/** What a client may send over a WebSocket. */
export const clientFrameSchema: z.ZodType<ClientFrame> = z.discriminatedUnion(
  "type",
  [
    z.strictObject({
      type: z.literal("prompt"),
      request_id: requestId,
      session: sessionField.exactOptional(),
      ...promptFields,
      ...trace,
    }),
    z.strictObject({
      type: z.literal("invoke"),
      request_id: requestId,
      payload: z.record(z.string(), z.unknown(), { error: needed("must be an object") }).exactOptional(),
      ...trace,
    }),
    z.strictObject({ type: z.literal("abort"), request_id: requestId }),
    z.strictObject({
      type: z.literal("approve"),
      request_id: requestId.exactOptional(),
      approval_id: textField(128).min(1, "must not be empty"),
      ...approvalFields,
    }),
    z.strictObject({ type: z.literal("ping") }),
  ],
  { error: "must be one of: prompt, invoke, abort, approve, ping" },
);
