import { z } from "zod";
import { cursorField, type Infer, limitField, nameField, needed, textField } from "./fields.ts";

/**
 * A rule by which calls run without an approval that the project's configuration alone asks for: `agent.approvals.allow`. All fields
 * that a rule has must fit a call.
 */
const allowRuleSchema = z
  .strictObject({
    tool: textField(200).meta({ description: "The name of the tool." }),
    agent: textField(200).optional().meta({ description: "The agent; absent for every agent." }),
    command: textField(2_000)
      .optional()
      .meta({ description: "For `bash`: as an entry of `allowed_commands`: `git status`, `npm test *`." }),
    path: textField(1_000).optional().meta({
      description:
        "For tools of files: a file of the workspace, or with `/` at its end a folder and all below it.",
    }),
    args: textField(4_000)
      .optional()
      .meta({ description: "The arguments as JSON: only calls with these very arguments." }),
    cwd: textField(1_000).optional().meta({
      description: "With `command` or `args`: the working folder below the workspace; absent for its root.",
    }),
  })
  .meta({ id: "AllowRule", description: "A rule that lets calls run without an approval." });
export interface AllowRule extends Infer<typeof allowRuleSchema> {}

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
    allow_rules: z.array(allowRuleSchema).optional().meta({
      description: "Rules that would let such calls run without an approval, the narrowest first.",
    }),
    no_allow_rule: z
      .string()
      .optional()
      .meta({ description: "Why no rule can let such calls run without an approval." }),
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

/** The reply of `GET /agents/{name}/{id}/approvals/{approval_id}/rules`: what may be written, before it is written. */
export const allowChoicesSchema = z
  .object({
    choices: z
      .array(
        z.object({
          rule: allowRuleSchema,
          summary: z.string().meta({ description: "The calls that the rule allows, as a sentence." }),
          toml: z.string().meta({ description: "The lines as they are written." }),
        }),
      )
      .meta({ description: "The narrowest first." }),
    file: z
      .string()
      .optional()
      .meta({ description: "The file that takes the rule, below the project's root." }),
    problem: z.string().optional().meta({ description: "Why no rule can be written here." }),
  })
  .meta({ id: "AllowChoices", description: "The rules that a waiting call can be allowed by." });
export interface AllowChoices extends Infer<typeof allowChoicesSchema> {}

/** The body of `POST /agents/{name}/{id}/approvals/{approval_id}/rules`: one of the offered rules. */
export const allowBodySchema = z.strictObject({ rule: allowRuleSchema });

export const allowedSchema = z
  .object({
    rule: allowRuleSchema,
    file: z.string(),
    toml: z.string().meta({ description: "The lines that were added; empty where the file had the rule." }),
    applies_to: z.enum(["all_nodes", "this_node"]).meta({
      description:
        "`this_node` where several machines share the work: the others need the changed file and a restart.",
    }),
  })
  .meta({ id: "AllowedCalls", description: "A rule that was written, and holds from now on." });
export interface AllowedCalls extends Infer<typeof allowedSchema> {}
