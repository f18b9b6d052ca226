import { z } from "zod";
import { approvalRequestSchema } from "./approval.ts";
import { cursorField, type Infer, limitField } from "./fields.ts";

const waitingCallSchema = z.object({
  kind: z.literal("call"),
  requested_at: z.string().meta({ description: "When the call began to wait; ISO 8601." }),
  approval: approvalRequestSchema,
});

const waitingSignalSchema = z.object({
  kind: z.literal("signal"),
  requested_at: z.string().meta({
    description:
      "When the run began to wait; ISO 8601. For a wait of an earlier version, when the run started.",
  }),
  run_id: z.string(),
  workflow: z.string(),
  position: z.int().meta({ description: "The position of the wait in the run's journal." }),
  signal: z.string().meta({ description: "The name that `POST /runs/{run_id}/signal` takes." }),
  message: z
    .string()
    .optional()
    .meta({ description: "What the workflow tells the person, if it does: the `message` of `waitFor`." }),
  schema: z
    .unknown()
    .optional()
    .meta({ description: "The JSON Schema of the payload, if the wait has one." }),
  until: z
    .string()
    .optional()
    .meta({ description: "When the run continues without the signal; absent if it waits without a limit." }),
  payload_start: z
    .string()
    .optional()
    .meta({ description: "The first 200 characters of the run's payload as JSON." }),
});
/** A wait of a run for a signal. */
export interface WaitingSignal extends Infer<typeof waitingSignalSchema> {}

const waitingLoginSchema = z.object({
  kind: z.literal("login"),
  requested_at: z
    .string()
    .meta({ description: "When the server first refused agents for want of a login; ISO 8601." }),
  server: z
    .string()
    .meta({ description: "The name of the MCP server, which `POST /logins/{server}` takes." }),
  host: z.string().meta({ description: "The host of its address." }),
  scope: z.string().optional().meta({ description: "The scope that it asks for, if it names one." }),
});
/** An MCP server that agents cannot use, or not all of it, until a person logs in. */
export interface WaitingLogin extends Infer<typeof waitingLoginSchema> {}

const waitingItemSchema = z
  .discriminatedUnion("kind", [waitingCallSchema, waitingSignalSchema, waitingLoginSchema])
  .meta({ id: "WaitingItem", description: "Something that waits for a person." });
/** Something that waits for a person: a tool call for its approval, a run for a signal, or an MCP server for a login. */
export type WaitingItem = Infer<typeof waitingItemSchema>;

/** The query of `GET /waiting`. */
export const waitingQuerySchema = z.strictObject({
  kind: z.enum(["call", "signal", "login"], { error: "must be one of: call, signal, login" }).optional(),
  limit: limitField.optional().meta({ description: "1 to 1,000; default 50." }),
  cursor: cursorField.optional(),
});
export interface WaitingQuery extends Infer<typeof waitingQuerySchema> {}

export const waitingPageSchema = z
  .object({
    items: z.array(waitingItemSchema),
    total: z.int().meta({ description: "The number of items on all pages that the sender may see." }),
    /** Absent on the last page. */
    next_cursor: z.string().optional(),
  })
  .meta({ id: "WaitingPage", description: "Oldest first." });
export interface WaitingPage extends Infer<typeof waitingPageSchema> {}
