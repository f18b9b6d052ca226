import { z } from "zod";
import { choiceField, countField, cursorField, type Infer, limitField, nameField } from "./fields.ts";

const sessionKeySchema = z.object({ agent: z.string(), instance_id: z.string(), session: z.string() });
/** The key of a session. */
export interface SessionKey extends Infer<typeof sessionKeySchema> {}

const sessionInfoSchema = z.object({
  ...sessionKeySchema.shape,
  created_at: z.string(),
  position: z.int().meta({ description: "Number of entries in the session's history." }),
  parent: sessionKeySchema.optional().meta({ description: "The session that started this task." }),
});
export interface SessionInfo extends Infer<typeof sessionInfoSchema> {}

/** A session in a list of all sessions. */
const touchedSessionSchema = z
  .object({
    ...sessionInfoSchema.shape,
    /** ISO 8601, from the store's clock. */
    touched_at: z.string().meta({ description: "When an entry was last added." }),
  })
  .meta({ id: "TouchedSession" });
export interface TouchedSession extends Infer<typeof touchedSessionSchema> {}

/** The query of `GET /sessions`. */
export const sessionsQuerySchema = z.strictObject({
  agent: nameField.optional(),
  instance_id: nameField.optional(),
  order: choiceField(["oldest", "newest"])
    .optional()
    .meta({ description: "Order by time of creation; default `oldest`." }),
  limit: limitField.optional().meta({ description: "1 to 1,000; default 50." }),
  cursor: cursorField.optional(),
});
export interface SessionsQuery extends Infer<typeof sessionsQuerySchema> {}

export interface TouchedSessionPage {
  readonly sessions: readonly TouchedSession[];
  readonly next_cursor?: string | undefined;
}

const listedSessionSchema = z
  .object({
    ...touchedSessionSchema.shape,
    status: z.enum(["idle", "working", "waiting"]).meta({
      description: "Only for sessions of this server; `waiting`: for an approval decision.",
    }),
  })
  .meta({ id: "ListedSession" });
export interface ListedSession extends Infer<typeof listedSessionSchema> {}

export const sessionPageSchema = z
  .object({ sessions: z.array(listedSessionSchema), next_cursor: z.string().optional() })
  .meta({ id: "SessionPage", description: "In the requested order." });
export interface SessionPage extends Infer<typeof sessionPageSchema> {}

/** Ten years. */
const longestSeconds = 315_360_000;
/** A session that was used within the last hour can still be in use. */
const leastPruneSeconds = 3_600;

/** The body of `POST /sessions/prune`. */
export const pruneBodySchema = z.strictObject({
  older_than_seconds: countField(longestSeconds)
    .min(leastPruneSeconds, `must be at least ${leastPruneSeconds}`)
    .meta({ description: "Only sessions without use for this many seconds." }),
  dry_run: z
    .boolean({ error: "must be true or false" })
    .optional()
    .meta({ description: "Lists the sessions and removes nothing." }),
  limit: limitField.optional().meta({ description: "Number of sessions to check, 1 to 1,000; default 200." }),
  cursor: cursorField.optional(),
});
export interface PruneBody extends Infer<typeof pruneBodySchema> {}

const pruneFailureSchema = z.object({
  ...sessionKeySchema.shape,
  error: z.object({ type: z.string(), message: z.string() }),
});
export interface PruneFailure extends Infer<typeof pruneFailureSchema> {}

export const prunedPageSchema = z
  .object({
    removed: z.array(touchedSessionSchema),
    in_use: z.int().meta({
      description:
        "Number of sessions that are old enough but stay: they are active, or have waiting callers or listeners.",
    }),
    failed: z
      .array(pruneFailureSchema)
      .meta({ description: "Sessions that could not be removed, or only in part, and why." }),
    next_cursor: z.string().optional().meta({ description: "Set if there are more sessions to check." }),
  })
  .meta({ id: "PrunedSessions" });
export interface PrunedPage extends Infer<typeof prunedPageSchema> {}
