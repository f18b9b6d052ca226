import { z } from "zod";
import { choiceField, countField, cursorField, type Infer, limitField, nameField } from "./fields.ts";

const sessionKeySchema = z.object({ agent: z.string(), instance_id: z.string(), session: z.string() });
/** Names a session: all three together. */
export interface SessionKey extends Infer<typeof sessionKeySchema> {}

const sessionInfoSchema = z.object({
  ...sessionKeySchema.shape,
  created_at: z.string(),
  position: z.int().meta({ description: "How many entries its history has." }),
  /** The session that started this task. */
  parent: sessionKeySchema.optional().meta({ description: "The session whose task it is." }),
});
export interface SessionInfo extends Infer<typeof sessionInfoSchema> {}

/** A session as a list of all of them shows it. */
const touchedSessionSchema = z
  .object({
    ...sessionInfoSchema.shape,
    /** By the store's own clock; ISO 8601. */
    touched_at: z.string().meta({ description: "When something was last added." }),
  })
  .meta({ id: "TouchedSession" });
export interface TouchedSession extends Infer<typeof touchedSessionSchema> {}

/** The query of `GET /sessions`. */
export const sessionsQuerySchema = z.strictObject({
  agent: nameField.optional(),
  instance_id: nameField.optional(),
  order: choiceField(["oldest", "newest"])
    .optional()
    .meta({ description: "By when they were made; default `oldest`." }),
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
      description: "`waiting`: for the decision about a tool call. Of what this server works on.",
    }),
  })
  .meta({ id: "ListedSession" });
export interface ListedSession extends Infer<typeof listedSessionSchema> {}

export const sessionPageSchema = z
  .object({ sessions: z.array(listedSessionSchema), next_cursor: z.string().optional() })
  .meta({ id: "SessionPage", description: "In the order that was asked for." });
export interface SessionPage extends Infer<typeof sessionPageSchema> {}

/** Ten years. */
const longestSeconds = 315_360_000;
/** A session that was touched within the hour may be in use. */
const leastPruneSeconds = 3_600;

/** The body of `POST /sessions/prune`. */
export const pruneBodySchema = z.strictObject({
  older_than_seconds: countField(longestSeconds)
    .min(leastPruneSeconds, `must be at least ${leastPruneSeconds}`)
    .meta({ description: "Sessions that have not been used for so long." }),
  dry_run: z.boolean({ error: "must be true or false" }).optional().meta({ description: "Removes nothing." }),
  limit: limitField.optional().meta({ description: "Sessions to look at, 1 to 1,000; default 200." }),
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
    in_use: z.int().meta({ description: "Old enough, but at work, waited for or listened to." }),
    failed: z
      .array(pruneFailureSchema)
      .meta({ description: "Could not be removed, or not as a whole, and why." }),
    next_cursor: z.string().optional().meta({ description: "There are more to look at." }),
  })
  .meta({ id: "PrunedSessions" });
export interface PrunedPage extends Infer<typeof prunedPageSchema> {}
