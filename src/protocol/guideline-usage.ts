import { z } from "zod";
import { type Infer, nameField, timeField } from "./fields.ts";
import { indexingSchema } from "./indexing.ts";

/** The query of `GET /api/guidelines/usage`. */
export const guidelineUsageQuerySchema = z.strictObject({
  since: timeField
    .optional()
    .meta({ description: "Only turns at this time or later; default: the last 30 days." }),
  agent: nameField.optional().meta({ description: "Only the sessions of this agent." }),
});
export interface GuidelineUsageQuery extends Infer<typeof guidelineUsageQuerySchema> {}

const ruleUsageSchema = z.object({
  rule: z.string().meta({
    description:
      "`AGENTS.md#money` for a section; the path for a whole file, and for what is before its first section.",
  }),
  file: z.string().optional(),
  line: z.int().optional(),
  title: z.string().optional(),
  in_project: z.boolean().meta({
    description:
      "False for one that is not among the project's guidelines now: it was removed, or a rule imports its file.",
  }),
  sessions: z
    .int()
    .meta({ description: "Number of sessions with a turn whose prompt had the rule; 0: never shown." }),
  turns: z.int(),
  tokens: z.int().meta({ description: "Approximate tokens of the rule, added up over these turns." }),
  share: z
    .number()
    .nullable()
    .meta({ description: "`tokens` as a part of `input_tokens`; null if no provider counted any." }),
  cost: z.number().nullable().meta({
    description:
      "US dollars: the rule's part of the input of each turn, at what that input cost; null if the price of one is unknown.",
  }),
  last_shown: z.string().optional().meta({ description: "Absent if it was not shown." }),
  why: z
    .array(z.string())
    .meta({ description: "The reasons of its receipts, the most frequent first; at most three." }),
  turns_left_out: z.int().meta({ description: "Turns of sessions that leave the rule out." }),
});
export interface RuleUsage extends Infer<typeof ruleUsageSchema> {}

export const guidelineUsageSchema = z
  .object({
    since: z.string(),
    sessions: z.int().meta({ description: "Number of sessions with a turn in this time." }),
    turns: z.int(),
    input_tokens: z.int().meta({ description: "Of these turns, as providers count them." }),
    unlisted: z
      .int()
      .meta({ description: "Items that receipts counted and did not list, added up over the turns." }),
    rules: z.array(ruleUsageSchema).meta({
      description: "The rules that were shown by their tokens, then those that were never shown.",
    }),
    indexing: indexingSchema.optional(),
  })
  .meta({ id: "GuidelineUsage", description: "How often sessions were shown the rules of the project." });
export interface GuidelineUsage extends Infer<typeof guidelineUsageSchema> {}
