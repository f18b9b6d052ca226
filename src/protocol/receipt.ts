import * as z from "zod/mini";
import { receiptKinds } from "./enums.ts";
import type { Infer } from "./fields.ts";

export type { ReceiptKind } from "./enums.ts";

/** Something that stands in a prompt: what it is and why it is there, without its text. */
export const receiptItemSchema = z
  .object({
    kind: z.enum(receiptKinds),
    /** The id of a guideline or spec, the name of a skill, role or agent, the path of project instructions. */
    id: z.string(),
    /** Absent for what comes from no file. */
    file: z.optional(z.string()).check(z.meta({ description: "Relative to the root of the repository." })),
    /** From 1. */
    line: z.optional(z.int().check(z.minimum(1))),
    /** In words: "instructions of the project", "applies to src/app.ts", "found by spec_search". */
    why: z.string(),
    /** About how many tokens it takes. */
    tokens: z.int().check(z.meta({ description: "About." })),
  })
  .check(z.meta({ id: "ReceiptItem", description: "Something that stands in a prompt, without its text." }));
export interface ReceiptItem extends Infer<typeof receiptItemSchema> {}

/**
 * The content in the model's context in a turn. Lists are long and stay the same, so a receipt begins with the
 * whole list of the turn `before` and tells what has come since. Without `before`, `added` is the whole list.
 */
export const receiptSchema = z
  .object({
    /** The same items in the same order have the same digest. */
    digest: z.string().check(z.meta({ description: "Names the whole list." })),
    items: z.int().check(z.meta({ description: "How many items the whole list has." })),
    /** About how many tokens the whole list takes. */
    tokens: z.int(),
    /** A `turn_id` of the same session. */
    before: z.optional(z.string()).check(
      z.meta({
        description: "The turn whose whole list this one begins with; absent for a list told whole.",
      }),
    ),
    /** Absent where nothing has come since. */
    added: z.optional(z.array(receiptItemSchema)),
    /** At most 200 items are added. */
    omitted: z.optional(z.int()).check(z.meta({ description: "How many items `added` leaves out." })),
  })
  .check(z.meta({ id: "TurnReceipt", description: "What was in the model's context in a turn." }));
export interface TurnReceipt extends Infer<typeof receiptSchema> {}

/**
 * The beginning of a prompt, before its history. A provider's cache serves a turn that has the same digest as
 * the one before it.
 */
export const prefixSchema = z
  .object({
    digest: z.string(),
    /**
     * `model`, `settings`, `tools`, a section of the system prompt (`instructions`, `project_instructions`,
     * `working_folder`, `specs`, `commands`, `skills`, `agents`, `role`, `secrets`), or `compaction`.
     */
    changed: z
      .optional(z.array(z.string()))
      .check(
        z.meta({ description: "What is other than in the turn before, so that its cache is of no use." }),
      ),
  })
  .check(z.meta({ id: "PromptPrefix", description: "Of what a prompt consists before its history." }));
export interface PromptPrefix extends Infer<typeof prefixSchema> {}

export const turnRecordSchema = z.object({
  turn_id: z.string(),
  prefix: prefixSchema,
  /** A digest of each part that `changed` can name. */
  parts: z.record(z.string(), z.string()),
  receipt: receiptSchema,
});
/**
 * The record that the log of a session keeps of a turn whose prompt begins otherwise, or shows more, than
 * that of the turn before.
 */
export interface TurnRecord extends Infer<typeof turnRecordSchema> {}
