import { z } from "zod";
import type { ApprovalDecision, ApprovalRequest } from "../approval.ts";
import { cursorField, type FieldSchemas, limitField, nameField, needed, textField } from "./fields.ts";

const approvalRequestSchema: z.ZodType<ApprovalRequest> = z
  .object({
    approval_id: z.string(),
    agent: z.string(),
    instance_id: z.string(),
    session: z.string(),
    operation_id: z.string(),
    tool_call_id: z.string(),
    tool: z.string(),
    args: z.unknown().meta({ description: "What the model wants the tool to do." }),
    requested_at: z.string(),
    expires_at: z.string().exactOptional().meta({ description: "When it counts as denied." }),
    run_id: z.string().exactOptional(),
    task_id: z.string().exactOptional(),
  })
  .meta({ id: "ApprovalRequest", description: "A tool call that waits for somebody's word." });

export interface ApprovalList {
  readonly approvals: readonly ApprovalRequest[];
}

export const approvalListSchema: z.ZodType<ApprovalList> = z
  .object({ approvals: z.array(approvalRequestSchema) })
  .meta({ id: "ApprovalList", description: "Oldest first." });

export interface ApprovalPage extends ApprovalList {
  /** Absent on the last page. */
  readonly next_cursor?: string;
}

export const approvalPageSchema: z.ZodType<ApprovalPage> = z
  .object({ approvals: z.array(approvalRequestSchema), next_cursor: z.string().exactOptional() })
  .meta({ id: "ApprovalPage", description: "Oldest first." });

/** The query of `GET /approvals`. */
export interface ApprovalQuery {
  readonly agent?: string;
  readonly instance_id?: string;
  readonly session?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

export const approvalQuerySchema: z.ZodType<ApprovalQuery> = z.strictObject({
  agent: nameField.exactOptional(),
  instance_id: nameField.exactOptional(),
  session: nameField.exactOptional(),
  limit: limitField.exactOptional().meta({ description: "1 to 1,000; default 50." }),
  cursor: cursorField.exactOptional(),
});

/** The body of `POST /agents/{name}/{id}/approvals/{approval_id}`. */
export type ApprovalBody = Omit<ApprovalDecision, "by">;

export const approvalFields: FieldSchemas<ApprovalBody> = {
  approved: z.boolean({ error: needed("must be true or false") }),
  reason: textField(10_000)
    .exactOptional()
    .meta({ description: "For the model, which reads it as the result of a denied call." }),
};

export const approvalBodySchema: z.ZodType<ApprovalBody> = z.strictObject(approvalFields);

export const decidedSchema: z.ZodType<{ readonly approved: boolean }> = z
  .object({ approved: z.boolean() })
  .meta({ id: "Decided" });
