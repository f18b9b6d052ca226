import * as z from "zod/mini";
import { receiptKinds } from "./enums.ts";
import type { Infer } from "./fields.ts";

export type { ReceiptKind } from "./enums.ts";

/** An item of a prompt: what it is and why the prompt contains it, without its text. */
export const receiptItemSchema = z
  .object({
    kind: z.enum(receiptKinds),
    /**
     * The id of a rule (`AGENTS.md#money`, or the path for a whole file and for what is before its first section), the id of a spec,
     * or the name of a skill, role or agent. In logs of versions before 0.4 guidelines have their 16 digits, and project
     * instructions the path of the whole file.
     */
    id: z.string(),
    /** Absent for an item that comes from no file. */
    file: z.optional(z.string()).check(z.meta({ description: "Relative to the root of the repository." })),
    /** From 1. */
    line: z.optional(z.int().check(z.minimum(1))),
    /** A phrase: "instructions of the project", "applies to src/app.ts", "found by spec_search". */
    why: z.string(),
    tokens: z.int().check(z.meta({ description: "Approximate." })),
  })
  .check(z.meta({ id: "ReceiptItem", description: "An item of a prompt, without its text." }));
export interface ReceiptItem extends Infer<typeof receiptItemSchema> {}

/**
 * The content in the model's context in a turn. Lists are long and rarely change, so a receipt refers to the
 * whole list of the turn `before` and adds the new items. Without `before`, `added` is the whole list.
 */
export const receiptSchema = z
  .object({
    /** The same items in the same order have the same digest. */
    digest: z.string().check(z.meta({ description: "Digest of the whole list." })),
    items: z.int().check(z.meta({ description: "Number of items in the whole list." })),
    /** Approximate number of tokens of the whole list. */
    tokens: z.int(),
    /** A `turn_id` of the same session. */
    before: z.optional(z.string()).check(
      z.meta({
        description: "The turn whose whole list this one extends; absent if `added` is the whole list.",
      }),
    ),
    /** Absent if there are no new items. */
    added: z.optional(z.array(receiptItemSchema)),
    /** `added` holds at most 200 items. */
    omitted: z.optional(z.int()).check(z.meta({ description: "Number of items that `added` leaves out." })),
    /** Absent if the session leaves out no rule. */
    left_out: z
      .optional(z.array(z.string()))
      .check(z.meta({ description: "Rules that the session leaves out: ids of rules, and files." })),
  })
  .check(z.meta({ id: "TurnReceipt", description: "The content in the model's context in a turn." }));
export interface TurnReceipt extends Infer<typeof receiptSchema> {}

/**
 * The beginning of a prompt, before its history. A provider's cache serves a turn that has the same digest as
 * the previous turn.
 */
export const prefixSchema = z
  .object({
    digest: z.string(),
    /**
     * `model`, `settings`, `tools`, a section of the system prompt (`instructions`, `project_instructions`,
     * `working_folder`, `specs`, `commands`, `skills`, `agents`, `role`, `secrets`), or `compaction`.
     */
    changed: z.optional(z.array(z.string())).check(
      z.meta({
        description:
          "The parts that differ from the previous turn, so that the provider's cache does not apply.",
      }),
    ),
  })
  .check(z.meta({ id: "PromptPrefix", description: "The parts of a prompt before its history." }));
export interface PromptPrefix extends Infer<typeof prefixSchema> {}

export const turnRecordSchema = z.object({
  turn_id: z.string(),
  prefix: prefixSchema,
  /** A digest of each part that `changed` can name. */
  parts: z.record(z.string(), z.string()),
  receipt: receiptSchema,
});
/**
 * The record that a session's log keeps of a turn whose prompt begins differently, or shows more, than the
 * prompt of the previous turn.
 */
export interface TurnRecord extends Infer<typeof turnRecordSchema> {}
