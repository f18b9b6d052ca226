import { z } from "zod";
import type { EventType, KitEvent } from "../event.ts";
import { type RunRecord, type RunStatus, runStatuses } from "../run.ts";
import { errorSchema, eventSchema, eventTypes } from "./event-schemas.ts";
import {
  choiceField,
  countField,
  cursorField,
  eventPositionField,
  limitField,
  nameField,
  textField,
} from "./fields.ts";

/** A workflow as `GET /workflows` lists it. */
export interface WorkflowEntry {
  readonly name: string;
  /** The file it stands in: POSIX, relative to the project root. */
  readonly path: string;
}

export interface WorkflowList {
  readonly workflows: readonly WorkflowEntry[];
}

export const workflowListSchema: z.ZodType<WorkflowList> = z
  .object({
    workflows: z.array(
      z.object({
        name: z.string(),
        path: z.string().meta({ description: "Its file: POSIX, relative to the project root." }),
      }),
    ),
  })
  .meta({ id: "WorkflowList" });

/** The query of `POST /workflows/{name}`. */
export interface StartRunQuery {
  readonly wait?: "result";
}

export const startRunQuerySchema: z.ZodType<StartRunQuery> = z.strictObject({
  wait: choiceField(["result"])
    .exactOptional()
    .meta({ description: "The reply waits for the result of the run." }),
});

/** What a workflow is given; its own schema, where it has one, checks more. */
export const payloadSchema: z.ZodType<Readonly<Record<string, unknown>>> = z
  .record(z.string(), z.unknown())
  .meta({ description: 'The payload itself, or `{"payload": {…}}`.' });

export interface RunAccepted {
  readonly status: "accepted";
  readonly run_id: string;
}

export interface RunCompleted {
  readonly status: "completed";
  readonly run_id: string;
  readonly result?: unknown;
}

export const runAcceptedSchema: z.ZodType<RunAccepted> = z
  .object({ status: z.literal("accepted"), run_id: z.string() })
  .meta({ id: "RunAccepted" });

export const runCompletedSchema: z.ZodType<RunCompleted> = z
  .object({ status: z.literal("completed"), run_id: z.string(), result: z.unknown().optional() })
  .meta({ id: "RunCompleted" });

/** The query of `GET /runs`. */
export interface RunQuery {
  readonly status?: RunStatus;
  readonly workflow?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

export const runQuerySchema: z.ZodType<RunQuery> = z.strictObject({
  status: choiceField(runStatuses).exactOptional(),
  workflow: nameField.exactOptional(),
  limit: limitField.exactOptional().meta({ description: "1 to 1,000; default 50." }),
  cursor: cursorField.exactOptional(),
});

export const runRecordSchema: z.ZodType<RunRecord> = z
  .object({
    run_id: z.string(),
    workflow: z.string(),
    status: z.enum(runStatuses),
    payload: z.unknown(),
    result: z.unknown().optional(),
    error: errorSchema.exactOptional(),
    accepted_at: z.string(),
    started_at: z.string().exactOptional(),
    ended_at: z.string().exactOptional(),
    duration_ms: z.number().exactOptional(),
    waiting_for: z
      .array(
        z.object({
          signal: z.string().exactOptional().meta({ description: "Its name; absent for a sleep." }),
          until: z
            .string()
            .exactOptional()
            .meta({ description: "When it goes on without; absent where it waits as long as it takes." }),
        }),
      )
      .exactOptional()
      .meta({ description: "The waits that are open, the first 100; absent when there is none." }),
    event_count: z.int(),
  })
  .meta({ id: "Run" });

export interface RunPage {
  readonly runs: readonly RunRecord[];
  readonly next_cursor?: string;
}

export const runPageSchema: z.ZodType<RunPage> = z
  .object({ runs: z.array(runRecordSchema), next_cursor: z.string().exactOptional() })
  .meta({ id: "RunPage", description: "Newest first." });

/** The query of `GET /runs/{run_id}/events`. */
export interface RunEventsQuery {
  readonly after?: number;
  readonly limit?: number;
  /** Event types, joined by commas. */
  readonly types?: readonly EventType[];
}

export const runEventsQuerySchema: z.ZodType<RunEventsQuery> = z.strictObject({
  after: eventPositionField.exactOptional(),
  limit: countField(1_000).exactOptional().meta({ description: "1 to 1,000; default 100." }),
  types: textField(1_000)
    .transform((types): unknown[] => types.split(","))
    .pipe(z.array(choiceField(eventTypes)))
    .exactOptional()
    .meta({ description: "Event types, joined by commas; without it, all." }),
});

export interface RunEventPage {
  readonly events: readonly KitEvent[];
  /** `after` of the next page; absent when there was nothing more. */
  readonly next_after?: number;
}

export const runEventPageSchema: z.ZodType<RunEventPage> = z
  .object({
    events: z.array(eventSchema),
    next_after: z
      .int()
      .exactOptional()
      .meta({ description: "`after` of the next page; absent when there was nothing more." }),
  })
  .meta({ id: "RunEventPage", description: "Oldest first." });

export interface RunStreamQuery {
  readonly after?: number;
}

export const runStreamQuerySchema: z.ZodType<RunStreamQuery> = z.strictObject({
  after: eventPositionField.exactOptional(),
});

/** The body of `POST /runs/{run_id}/signal`. */
export interface SignalBody {
  readonly name: string;
  readonly payload?: unknown;
}

export const signalBodySchema: z.ZodType<SignalBody> = z.strictObject({
  name: textField(200)
    .min(1, "must not be empty")
    .meta({ description: "The name that the workflow waits for." }),
  payload: z.unknown().optional(),
});

export const signalAcceptedSchema: z.ZodType<{ readonly status: "accepted" }> = z
  .object({ status: z.literal("accepted") })
  .meta({ id: "SignalAccepted" });
