import { z } from "zod";
import type { SessionKey, TouchedSession, TouchedSessionPage } from "../session-entry.ts";
import { countField, cursorField, limitField } from "./fields.ts";

/** The query of `GET /sessions`. */
export interface SessionsQuery {
  readonly limit?: number;
  readonly cursor?: string;
}

export const sessionsQuerySchema: z.ZodType<SessionsQuery> = z.strictObject({
  limit: limitField.exactOptional().meta({ description: "1 to 1,000; default 50." }),
  cursor: cursorField.exactOptional(),
});

const keyFields = { agent: z.string(), instance_id: z.string(), session: z.string() };

const touchedSessionSchema: z.ZodType<TouchedSession> = z
  .object({
    ...keyFields,
    created_at: z.string(),
    position: z.int().meta({ description: "How many entries its history has." }),
    parent: z.object(keyFields).exactOptional().meta({ description: "The session whose task it is." }),
    touched_at: z.string().meta({ description: "When something was last added." }),
  })
  .meta({ id: "TouchedSession" });

export const sessionPageSchema: z.ZodType<TouchedSessionPage> = z
  .object({ sessions: z.array(touchedSessionSchema), next_cursor: z.string().exactOptional() })
  .meta({ id: "SessionPage", description: "In the order in which they were made." });

/** The body of `POST /sessions/prune`. */
export interface PruneBody {
  readonly older_than_seconds: number;
  readonly dry_run?: boolean;
  /** Sessions that one request looks at. */
  readonly limit?: number;
  readonly cursor?: string;
}

/** Ten years. */
const longestSeconds = 315_360_000;
/** What was touched within the hour is somebody's. */
const leastPruneSeconds = 3_600;

export const pruneBodySchema: z.ZodType<PruneBody> = z.strictObject({
  older_than_seconds: countField(longestSeconds)
    .min(leastPruneSeconds, `must be at least ${leastPruneSeconds}`)
    .meta({ description: "Sessions that nobody has touched for so long." }),
  dry_run: z
    .boolean({ error: "must be true or false" })
    .exactOptional()
    .meta({ description: "Removes nothing." }),
  limit: limitField.exactOptional().meta({ description: "Sessions to look at, 1 to 1,000; default 200." }),
  cursor: cursorField.exactOptional(),
});

export interface PrunedPage {
  readonly removed: readonly TouchedSession[];
  readonly in_use: number;
  /** Those that could not be removed, or not as a whole, and why. */
  readonly failed: readonly PruneFailure[];
  readonly next_cursor?: string;
}

export interface PruneFailure extends SessionKey {
  readonly error: { readonly type: string; readonly message: string };
}

export const prunedPageSchema: z.ZodType<PrunedPage> = z
  .object({
    removed: z.array(touchedSessionSchema),
    in_use: z.int().meta({ description: "Old enough, but at work, waited for or listened to." }),
    failed: z
      .array(z.object({ ...keyFields, error: z.object({ type: z.string(), message: z.string() }) }))
      .meta({ description: "Could not be removed, or not as a whole, and why." }),
    next_cursor: z.string().exactOptional().meta({ description: "There are more to look at." }),
  })
  .meta({ id: "PrunedSessions" });
