import { z } from "zod";
import { approvalBodySchema } from "./approval.ts";
import type { ErrorEnvelope } from "./errors.ts";
import type { KitEvent } from "./event.ts";
import { type Infer, needed, textField } from "./fields.ts";
import { promptRequestSchema, sessionField } from "./prompt.ts";

const requestId = textField(128)
  .min(1, "must not be empty")
  .meta({ description: "Chosen by the client; all frames of the request carry it." });

/** Invalid values are ignored, as in headers. */
const traceField = z.string().optional().catch(undefined);
const trace = { traceparent: traceField, tracestate: traceField };

/** A frame that a client sends over a WebSocket: `prompt` and `approve` to an agent, `invoke` to a workflow. */
export const clientFrameSchema = z.discriminatedUnion(
  "type",
  [
    z.strictObject({
      type: z.literal("prompt"),
      request_id: requestId,
      session: sessionField.optional(),
      ...promptRequestSchema.shape,
      ...trace,
    }),
    z.strictObject({
      type: z.literal("invoke"),
      request_id: requestId,
      payload: z.record(z.string(), z.unknown(), { error: needed("must be an object") }).optional(),
      ...trace,
    }),
    z.strictObject({ type: z.literal("abort"), request_id: requestId }),
    z.strictObject({
      type: z.literal("approve"),
      request_id: requestId.optional(),
      approval_id: textField(128).min(1, "must not be empty"),
      ...approvalBodySchema.shape,
    }),
    z.strictObject({ type: z.literal("ping") }),
  ],
  { error: "must be one of: prompt, invoke, abort, approve, ping" },
);
export type ClientFrame = Infer<typeof clientFrameSchema>;

/** The trace of a frame, in the form of the headers of a request; an invalid trace is ignored. */
export interface FrameTrace {
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
}

/** The frames that the server sends. */
export type ServerFrame =
  | {
      readonly type: "ready";
      readonly target: "agent" | "workflow";
      readonly name: string;
      readonly instance_id?: string;
    }
  | { readonly type: "started"; readonly request_id: string; readonly run_id?: string }
  | { readonly type: "event"; readonly request_id: string; readonly event: KitEvent }
  | { readonly type: "result"; readonly request_id: string; readonly result: unknown }
  | { readonly type: "error"; readonly request_id?: string; readonly error: ErrorEnvelope["error"] }
  | { readonly type: "pong" };
