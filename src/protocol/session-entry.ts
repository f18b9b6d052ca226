import * as z from "zod/mini";
import type { Infer } from "./fields.ts";
import { messageSchema } from "./message.ts";
import { turnRecordSchema } from "./receipt.ts";
import { repositoryStateSchema } from "./repository.ts";

export type { SessionInfo, SessionKey, TouchedSession, TouchedSessionPage } from "./session-page.ts";

/** On the first entry of an operation. Absent outside of Git, and in older logs. */
const repository = z.optional(repositoryStateSchema);

/** An entry of a session's log, read from a store. Unknown fields are ignored. */
export const sessionEntrySchema = z.discriminatedUnion("type", [
  z.object({
    version: z.literal(1),
    type: z.literal("message"),
    message: messageSchema,
    operation_id: z.string(),
    /** On a model's answer: the parts of its prompt, if they differ from those of the previous turn. */
    turn: z.optional(turnRecordSchema),
    repository,
  }),
  z.object({
    version: z.literal(1),
    type: z.literal("compaction"),
    /** The summary replaces the entries before this position (1-based) in the context. */
    keep_from: z.number(),
    summary: z.string(),
    tokens_before: z.number(),
    tokens_after: z.number(),
    timestamp: z.string(),
    /** The operation that compacted the history; absent in older logs. */
    operation_id: z.optional(z.string()),
    repository,
  }),
  z.object({
    version: z.literal(1),
    type: z.literal("note"),
    /** The name of a fact that kit stores with a session, such as the guidelines already shown. */
    name: z.string(),
    value: z.optional(z.unknown()),
    timestamp: z.string(),
    /**
     * Set if the note concerns only one operation, such as an approval: kit reads it when that operation resumes, and
     * does not keep it in memory until then.
     */
    operation_id: z.optional(z.string()),
    repository,
  }),
]);
/** One line of a session's log. The session's state is a fold over its lines (`agents/log/session-state.ts`). */
export type SessionEntry = Infer<typeof sessionEntrySchema>;
