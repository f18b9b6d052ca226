import { z } from "zod";
import { sessionOrders, sessionStates, sessionStatuses } from "./enums.ts";
import {
  choiceField,
  countField,
  cursorField,
  type Infer,
  limitField,
  nameField,
  needed,
  searchField,
  timeField,
  totalField,
  totalQueryField,
} from "./fields.ts";

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

export type { SessionOrder, SessionState, SessionStatus } from "./enums.ts";

/** The summary that a store keeps of a session besides its entries. A store without summaries leaves all fields out. */
const sessionSummarySchema = z.object({
  title: z
    .string()
    .optional()
    .meta({ description: "The first words of the first message: one line of at most 80 characters." }),
  state: z.enum(sessionStates).optional().meta({
    description:
      "How the last operation ended: `failed`, `stopped` by an abort, or `idle`, also before its end.",
  }),
  error: z
    .object({
      type: z.string(),
      message: z.string(),
      cause: z.object({ name: z.string(), message: z.string() }).optional().meta({
        description: "The words of the model's provider, or of the code that threw: their first line.",
      }),
    })
    .optional()
    .meta({ description: "The error of a `failed` or `stopped` operation." }),
  cost: z
    .number()
    .nullable()
    .optional()
    .meta({ description: "US dollars of all model calls; null if the price of one is unknown." }),
  tokens: z.int().optional().meta({ description: "Tokens of all model calls." }),
});
export interface SessionSummary extends Infer<typeof sessionSummarySchema> {}

/** A session in a list of all sessions. */
const touchedSessionSchema = z
  .object({
    ...sessionInfoSchema.shape,
    ...sessionSummarySchema.shape,
    /** ISO 8601, from the store's clock. */
    touched_at: z.string().meta({ description: "When an entry was last added." }),
  })
  .meta({ id: "TouchedSession" });
export interface TouchedSession extends Infer<typeof touchedSessionSchema> {}

/** The query of `GET /sessions`. */
export const sessionsQuerySchema = z.strictObject({
  agent: nameField.optional(),
  instance_id: nameField.optional(),
  search: searchField
    .optional()
    .meta({ description: "Only sessions whose title, instance or name contains this text, in any case." }),
  status: choiceField(sessionStatuses).optional(),
  since: timeField
    .optional()
    .meta({ description: "Only sessions that were last used at this time or later." }),
  until: timeField.optional().meta({ description: "Only sessions that were last used before this time." }),
  parents_only: z
    .boolean({ error: needed("must be true or false") })
    .optional()
    .meta({ description: "Whether the sessions of tasks are left out." }),
  order: choiceField(sessionOrders).optional().meta({
    description:
      "`oldest` (default) and `newest` by the time of creation; `recent`: the last used first, to about a second.",
  }),
  count: totalQueryField.optional(),
  limit: limitField.optional().meta({ description: "1 to 1,000; default 50." }),
  cursor: cursorField.optional(),
});
export interface SessionsQuery extends Infer<typeof sessionsQuerySchema> {}

export interface TouchedSessionPage {
  readonly sessions: readonly TouchedSession[];
  readonly next_cursor?: string | undefined;
  /** The number of sessions on all pages, if the listing asked for it and the store counts. */
  readonly total?: number | undefined;
}

const listedSessionSchema = z
  .object({
    ...touchedSessionSchema.shape,
    status: z.enum(sessionStatuses).meta({
      description:
        "`waiting`: for an approval decision; `working`: an input runs; otherwise how the last operation ended.",
    }),
  })
  .meta({ id: "ListedSession" });
export interface ListedSession extends Infer<typeof listedSessionSchema> {}

export const sessionPageSchema = z
  .object({
    sessions: z.array(listedSessionSchema),
    next_cursor: z.string().optional(),
    total: totalField.optional(),
  })
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
