import { z } from "zod";
import { callKinds } from "./enums.ts";
import { cursorField, type Infer, limitField, nameField, needed, textField } from "./fields.ts";

/**
 * A rule of `agent.approvals.allow`: matching calls run without the approval that the configuration requires. A call
 * matches if it fits all fields of the rule. Approvals that an agent's code requires are not affected.
 */
const allowRuleSchema = z
  .strictObject({
    tool: textField(200).meta({ description: "The name of the tool." }),
    agent: textField(200).optional().meta({ description: "The agent; absent for every agent." }),
    command: textField(2_000)
      .optional()
      .meta({ description: "For `bash`, in the syntax of `allowed_commands`: `git status`, `npm test *`." }),
    path: textField(1_000).optional().meta({
      description:
        "For file tools: a file of the workspace, or, with a trailing `/`, a folder and everything below it.",
    }),
    args: textField(4_000)
      .optional()
      .meta({ description: "The arguments as JSON: only calls with exactly these arguments." }),
    cwd: textField(1_000).optional().meta({
      description: "With `command` or `args`: the working folder below the workspace; absent for its root.",
    }),
  })
  .meta({ id: "AllowRule", description: "A rule that lets calls run without an approval." });
export interface AllowRule extends Infer<typeof allowRuleSchema> {}

/** A tool call that waits for an approval decision. Times are ISO 8601. */
export const approvalRequestSchema = z
  .object({
    /** `approval_`, `caller_` or `question_`, by its kind, and a ULID; the same if the request is repeated after a crash. */
    approval_id: z.string(),
    kind: z.enum(callKinds).optional().meta({
      description:
        "`caller`: a tool of the caller, whose result the decision has. `question`: a running call asks a person, and the decision has the answer. Absent for a call that needs approval.",
    }),
    message: z.string().optional().meta({ description: "The question of a call of that kind." }),
    schema: z
      .record(z.string(), z.unknown())
      .optional()
      .meta({ description: "The JSON Schema of the answer to a question." }),
    agent: z.string(),
    instance_id: z.string(),
    session: z.string(),
    operation_id: z.string(),
    tool_call_id: z.string(),
    tool: z.string(),
    args: z.unknown().meta({ description: "The model's arguments for the tool." }),
    requested_at: z.string(),
    /** Absent if the call waits without a limit. */
    expires_at: z.string().optional().meta({ description: "When the call is denied automatically." }),
    /** Set if the approver may replace the arguments. */
    input_schema: z
      .record(z.string(), z.unknown())
      .optional()
      .meta({ description: "The JSON Schema of the arguments, if the approver may change them." }),
    touches: z.array(z.string()).optional().meta({
      description: "The first 50 files that the call would touch, with the paths that the tool uses.",
    }),
    changes: z
      .object({
        path: z
          .string()
          .meta({ description: "Relative to the project root with `in_project`, else to the workspace." }),
        in_project: z
          .literal(true)
          .optional()
          .meta({ description: "A file of the project: `GET /api/files` has its present text." }),
        is_new: z
          .literal(true)
          .optional()
          .meta({ description: "There was no such file when the call was made." }),
        before: z.string().optional().meta({
          description:
            "The text of a file in a workspace of the session alone; empty for a new file. Absent above 50,000 characters.",
        }),
      })
      .optional()
      .meta({ description: "The file that a call of the built-in `write` or `edit` would change." }),
    allow_rules: z.array(allowRuleSchema).optional().meta({
      description: "Rules that would let such calls run without an approval, the narrowest first.",
    }),
    no_allow_rule: z
      .string()
      .optional()
      .meta({ description: "Why no rule can let such calls run without an approval." }),
    dispatch_id: z
      .string()
      .optional()
      .meta({ description: "The dispatched input whose work the call belongs to." }),
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
    .meta({ description: "For a denied call: the model reads it as the result." }),
  args: z.record(z.string(), z.unknown(), { error: "must be an object" }).optional().meta({
    description:
      "Replaces the arguments of an approved call whose request has an `input_schema`, which checks them.",
  }),
  result: z.unknown().optional().meta({
    description:
      "For a call of the caller's tool: its result, a text or other JSON, with `approved` true. A call that failed has `approved` false, and its `reason` is the error. For a question: the answer, which its `schema` checks; with `approved` false it is declined.",
  }),
});
export interface ApprovalBody extends Infer<typeof approvalBodySchema> {}

/** An approval decision. */
export interface ApprovalDecision extends ApprovalBody {
  /** The name that the caller gives the principal that decided. */
  readonly by?: string | undefined;
  /** Set if no person decided: the time was over, or no person could be asked. */
  readonly unanswered?: true | undefined;
}

export const decidedSchema = z.object({ approved: z.boolean() }).meta({ id: "Decided" });

/** The reply of `GET /agents/{name}/{id}/approvals/{approval_id}/rules`: a preview of the rules that can be written. */
export const allowChoicesSchema = z
  .object({
    choices: z
      .array(
        z.object({
          rule: allowRuleSchema,
          summary: z.string().meta({ description: "A sentence about the calls that the rule allows." }),
          toml: z.string().meta({ description: "The lines that would be added to the file." }),
        }),
      )
      .meta({ description: "The narrowest first." }),
    file: z
      .string()
      .optional()
      .meta({ description: "The file to which the rule is added, relative to the project root." }),
    problem: z.string().optional().meta({ description: "Why no rule can be written here." }),
  })
  .meta({ id: "AllowChoices", description: "The rules that could allow a waiting call." });
export interface AllowChoices extends Infer<typeof allowChoicesSchema> {}

/** The body of `POST /agents/{name}/{id}/approvals/{approval_id}/rules`: one of the offered rules. */
export const allowBodySchema = z.strictObject({ rule: allowRuleSchema });

export const allowedSchema = z
  .object({
    rule: allowRuleSchema,
    file: z.string(),
    toml: z
      .string()
      .meta({ description: "The lines that were added; empty if the file already had the rule." }),
    applies_to: z.enum(["all_nodes", "this_node"]).meta({
      description:
        "`this_node` if several machines share the work: the others need the changed file and a restart.",
    }),
  })
  .meta({ id: "AllowedCalls", description: "A rule that was written and applies from now on." });
export interface AllowedCalls extends Infer<typeof allowedSchema> {}
