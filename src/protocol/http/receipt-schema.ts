import { z } from "zod";
import { type PromptPrefix, type ReceiptItem, receiptKinds, type TurnReceipt } from "../receipt.ts";

const receiptItemSchema: z.ZodType<ReceiptItem> = z
  .object({
    kind: z.enum(receiptKinds),
    id: z.string(),
    file: z.string().exactOptional().meta({ description: "Relative to the root of the repository." }),
    line: z.int().min(1).exactOptional(),
    why: z.string(),
    tokens: z.int().meta({ description: "About." }),
  })
  .meta({ id: "ReceiptItem", description: "Something that stands in a prompt, without its text." });

export const receiptSchema: z.ZodType<TurnReceipt> = z
  .object({
    digest: z.string().meta({ description: "Names the whole list." }),
    items: z.int().meta({ description: "How many items the whole list has." }),
    tokens: z.int(),
    before: z
      .string()
      .exactOptional()
      .meta({ description: "The turn whose whole list this one begins with; absent for a list told whole." }),
    added: z.array(receiptItemSchema).exactOptional(),
    omitted: z.int().exactOptional().meta({ description: "How many items `added` leaves out." }),
  })
  .meta({ id: "TurnReceipt", description: "What was in front of the model in a turn." });

export const prefixSchema: z.ZodType<PromptPrefix> = z
  .object({
    digest: z.string(),
    changed: z
      .array(z.string())
      .exactOptional()
      .meta({ description: "What is other than in the turn before, so that its cache is of no use." }),
  })
  .meta({ id: "PromptPrefix", description: "Of what a prompt consists before its history." });
