import * as z from "zod/mini";
import type { Infer } from "./fields.ts";
import { messageSchema } from "./message.ts";
import { turnRecordSchema } from "./receipt.ts";

export type { SessionInfo, SessionKey, TouchedSession, TouchedSessionPage } from "./session-page.ts";

/** An entry of a session's log, as stores give it back. Fields that this kit does not know are let through. */
export const sessionEntrySchema = z.discriminatedUnion("type", [
  z.object({
    version: z.literal(1),
    type: z.literal("message"),
    message: messageSchema,
    operation_id: z.string(),
    /** On an answer of the model: what its prompt was made of, where that is other than in the turn before. */
    turn: z.optional(turnRecordSchema),
  }),
  z.object({
    version: z.literal(1),
    type: z.literal("compaction"),
    /** Entries before this position (1-based) leave the context; the summary takes their place. */
    keep_from: z.number(),
    summary: z.string(),
    tokens_before: z.number(),
    tokens_after: z.number(),
    timestamp: z.string(),
    /** The operation that shortened the history; absent in older logs. */
    operation_id: z.optional(z.string()),
  }),
  z.object({
    version: z.literal(1),
    type: z.literal("note"),
    /** The name of a fact that kit remembers of a session beside its messages, such as guidelines already shown. */
    name: z.string(),
    value: z.optional(z.unknown()),
    timestamp: z.string(),
    /**
     * Set where it is about one operation only, such as an approval: it is read again when that
     * operation is resumed, and kept in no memory until then.
     */
    operation_id: z.optional(z.string()),
  }),
]);
/** One line of a session's log. What is active is a fold over them (`agents/log/session-state.ts`). */
export type SessionEntry = Infer<typeof sessionEntrySchema>;
