import { z } from "zod";
import { cursorField, type Infer, limitField, nameField, needed, textField } from "./fields.ts";

/** A tool call that waits for an approval decision, as events and routes carry it. Times are ISO 8601. */
const approvalRequestSchema = z
  .object({
    /** `approval_` and a ULID; the same when the call is asked about again after a crash. */
    approval_id: z.string(),
    agent: z.string(),
    instance_id: z.string(),
    session: z.string(),
    operation_id: z.string(),
    tool_call_id: z.string(),
    tool: z.string(),
    args: z.unknown().meta({ description: "What the model wants the tool to do." }),
    requested_at: z.string(),
    /** Absent where it waits as long as it takes. */
    expires_at: z.string().optional().meta({ description: "When it counts as denied." }),
    /** Set where the approver may give other arguments. */
    input_schema: z
      .record(z.string(), z.unknown())
      .optional()
      .meta({ description: "The JSON Schema of the arguments, where the approver may change them." }),
    touches: z
      .array(z.string())
      .optional()
      .meta({ description: "The files that the call would touch, as the tool names them: the first 50." }),
    run_id: z.string().optional(),
    task_id: z.string().optional(),
  })
  .meta({ id: "ApprovalRequest", description: "A tool call that waits for approval." });
export interface ApprovalRequest extends Infer<typeof approvalRequestSchema> {}

export const approvalListSchema = z
  .object({ approvals: z.array(approvalRequestSchema) })
  .meta({ id: "ApprovalList", description: "Oldest first." });

export const approvalPageSchema = z
  .object({
    approvals: z.array(approvalRequestSchema),
    /** Absent on the last page. */
    next_cursor: z.string().optional(),
  })
  .meta({ id: "ApprovalPage", description: "Oldest first." });
export interface ApprovalPage extends Infer<typeof approvalPageSchema> {}

/** The query of `GET /approvals`. */
export const approvalQuerySchema = z.strictObject({
  agent: nameField.optional(),
  instance_id: nameField.optional(),
  session: nameField.optional(),
  limit: limitField.optional().meta({ description: "1 to 1,000; default 50." }),
  cursor: cursorField.optional(),
});
export interface ApprovalQuery extends Infer<typeof approvalQuerySchema> {}

/** The body of `POST /agents/{name}/{id}/approvals/{approval_id}`. */
export const approvalBodySchema = z.strictObject({
  approved: z.boolean({ error: needed("must be true or false") }),
  reason: textField(10_000)
    .optional()
    .meta({ description: "For the model, which reads it as the result of a denied call." }),
  args: z.record(z.string(), z.unknown(), { error: "must be an object" }).optional().meta({
    description:
      "Other arguments for an approved call whose request has an `input_schema`; they are checked by it.",
  }),
});
export interface ApprovalBody extends Infer<typeof approvalBodySchema> {}

/** An approval decision. */
export interface ApprovalDecision extends ApprovalBody {
  /** The principal that decided, as the caller names it. */
  readonly by?: string | undefined;
}

export const decidedSchema = z.object({ approved: z.boolean() }).meta({ id: "Decided" });
