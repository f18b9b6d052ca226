import { z } from "zod";
import { eventTypes, openRunStatuses, runStatuses } from "./enums.ts";
import { eventErrorSchema } from "./errors.ts";
import { eventSchema } from "./event.ts";
import {
  choiceField,
  countField,
  cursorField,
  eventPositionField,
  type Infer,
  limitField,
  nameField,
  searchField,
  streamPositionField,
  textField,
  timeField,
  totalField,
  totalQueryField,
} from "./fields.ts";
import { bulkPageShape, checkSelection, failureSchema, idsField } from "./selection.ts";
import { workCauseSchema } from "./work-cause.ts";

export type { RunStatus } from "./enums.ts";

/** A wait of a run: for a signal, a time, a signal until a time, or the end of another run. */
const runWaitSchema = z.object({
  /** The name passed to `waitFor`. */
  signal: z.string().optional().meta({ description: "The signal's name; absent for a sleep." }),
  run_id: z.string().optional().meta({ description: "The run whose end it waits for." }),
  until: z
    .string()
    .optional()
    .meta({ description: "When the run continues without the signal; absent if it waits without a limit." }),
});
export interface RunWait extends Infer<typeof runWaitSchema> {}

/** One invocation of a workflow. Times are ISO 8601. */
export const runRecordSchema = z
  .object({
    /** `run_` and a ULID. */
    run_id: z.string(),
    workflow: z.string(),
    parent_run_id: z
      .string()
      .optional()
      .meta({ description: "The run that started this run; cancelling it also cancels this run." }),
    cause: workCauseSchema.optional().meta({
      description:
        "What started the run; absent for a caller without a name, and for runs of earlier versions.",
    }),
    status: z.enum(runStatuses),
    payload: z.unknown(),
    result: z.unknown().optional(),
    error: eventErrorSchema.optional(),
    problem: eventErrorSchema.optional().meta({
      description:
        "Why the run waits although nothing is open: its code is missing, broken or does not match its journal.",
    }),
    accepted_at: z.string(),
    started_at: z.string().optional(),
    ended_at: z.string().optional(),
    duration_ms: z.number().optional(),
    /** Oldest wait first. */
    waiting_for: z
      .array(runWaitSchema)
      .optional()
      .meta({ description: "The first 100 open waits; absent if there is none." }),
    /** Number of events in the run's stream. */
    event_count: z.int(),
  })
  .meta({ id: "Run" });
export interface RunRecord extends Infer<typeof runRecordSchema> {}

/** An entry of a run's journal: a call of the run's context and its outcome. */
const journalEntrySchema = z
  .object({
    position: z.int().meta({ description: "From 1, in the order of the run's calls." }),
    kind: z.enum(["step", "sleep", "wait", "now", "uuid", "dispatch", "patch"]),
    name: z
      .string()
      .optional()
      .meta({ description: "The name of the step, signal or patch; for a dispatch, the agent." }),
    state: z.enum(["pending", "done", "failed"]).meta({ description: "`pending`: not ended yet." }),
    ended_as: z
      .int()
      .optional()
      .meta({ description: "Position among the ended entries, from 1, in the order of their ends." }),
    until: z.string().optional().meta({ description: "When an open wait times out; ISO 8601." }),
    value: z
      .unknown()
      .optional()
      .meta({ description: "The returned value; for an ended wait, the signal's payload." }),
    value_omitted: z
      .int()
      .optional()
      .meta({ description: "Length in characters of a value that is too large to be included." }),
    error: z.object({ type: z.string(), message: z.string() }).optional(),
    schema: z
      .unknown()
      .optional()
      .meta({ description: "The JSON Schema for the payload of an open wait, if it has one." }),
  })
  .meta({ id: "JournalEntry" });
export interface RunJournalEntry extends Infer<typeof journalEntrySchema> {}

/** The query of `GET /runs/{run_id}/journal`. */
export const journalQuerySchema = z.strictObject({
  after: eventPositionField.optional().meta({ description: "Entries after this position." }),
  limit: limitField.optional().meta({ description: "1 to 1,000; default 100." }),
});

export const journalPageSchema = z
  .object({
    entries: z.array(journalEntrySchema),
    next_after: z.int().optional().meta({ description: "`after` of the next page; absent at the end." }),
  })
  .meta({ id: "RunJournal", description: "In the order of positions." });
export interface RunJournalPage extends Infer<typeof journalPageSchema> {}

/** The times at which a workflow starts on a schedule. */
const scheduleRecordSchema = z
  .object({
    name: z.string().meta({ description: "Unique; putting a schedule of the same name replaces it." }),
    workflow: z.string(),
    cron: z.string().meta({ description: "Five or six fields, as cron(8) and croner read them." }),
    timezone: z.string().optional().meta({ description: "IANA name; default UTC." }),
    payload: z.unknown().optional(),
    next_at: z
      .string()
      .optional()
      .meta({ description: "ISO 8601; absent if the schedule has no further time." }),
    last_run_id: z.string().optional(),
  })
  .meta({ id: "Schedule" });
export interface ScheduleRecord extends Infer<typeof scheduleRecordSchema> {}

export const scheduleListSchema = z
  .object({ schedules: z.array(scheduleRecordSchema) })
  .meta({ id: "ScheduleList", description: "By name." });

/** A workflow as `GET /workflows` lists it. */
const workflowEntrySchema = z.object({
  name: z.string(),
  path: z.string().meta({ description: "Its file: POSIX, relative to the project root." }),
  payload_schema: z
    .record(z.string(), z.unknown())
    .optional()
    .meta({ description: "The JSON Schema of its payload, where it has one." }),
});
export interface WorkflowEntry extends Infer<typeof workflowEntrySchema> {}

export const workflowListSchema = z
  .object({ workflows: z.array(workflowEntrySchema) })
  .meta({ id: "WorkflowList" });

/** The query of `POST /workflows/{name}`. The workflow reads other parameters from `ctx.req`. */
export const startRunQuerySchema = z.strictObject({
  wait: choiceField(["result"])
    .optional()
    .meta({ description: "`result`: reply with the result once the run has ended." }),
});

/** The payload of a workflow, before the workflow's own schema checks it. */
export const payloadSchema = z
  .record(z.string(), z.unknown())
  .meta({ description: 'The payload itself, or `{"payload": {…}}`.' });

export const runAcceptedSchema = z
  .object({
    status: z.enum(["accepted", "failed"]),
    run_id: z.string(),
    error: eventErrorSchema.optional().meta({
      description: "The run was started before with this idempotency key, and has failed for good.",
    }),
  })
  .meta({ id: "RunAccepted" });
export interface RunAccepted extends Infer<typeof runAcceptedSchema> {}

export const runCompletedSchema = z
  .object({ status: z.literal("completed"), run_id: z.string(), result: z.unknown().optional() })
  .meta({ id: "RunCompleted" });
export interface RunCompleted extends Infer<typeof runCompletedSchema> {}

const runFilterShape = {
  workflow: nameField.optional(),
  search: searchField
    .optional()
    .meta({ description: "Only runs whose id, workflow, payload or error contains this text, in any case." }),
  since: timeField.optional().meta({ description: "Only runs that were accepted at this time or later." }),
  until: timeField.optional().meta({ description: "Only runs that were accepted before this time." }),
};

/** The query of `GET /runs`. */
export const runQuerySchema = z.strictObject({
  status: choiceField(runStatuses).optional(),
  ...runFilterShape,
  count: totalQueryField.optional(),
  limit: limitField.optional().meta({ description: "1 to 1,000; default 50." }),
  cursor: cursorField.optional(),
});
export interface RunQuery extends Infer<typeof runQuerySchema> {}

export const runPageSchema = z
  .object({
    runs: z.array(runRecordSchema),
    next_cursor: z.string().optional(),
    total: totalField.optional(),
  })
  .meta({ id: "RunPage", description: "Newest first." });
export interface RunPage extends Infer<typeof runPageSchema> {}

/** The body of `POST /runs/cancel`: ids, or a filter that says which runs. */
export const cancelRunsBodySchema = z
  .strictObject({
    ids: idsField.optional(),
    status: choiceField(openRunStatuses).optional(),
    ...runFilterShape,
    ...bulkPageShape,
  })
  .superRefine(checkSelection({ needsFilter: true }));
export interface CancelRunsBody extends Infer<typeof cancelRunsBodySchema> {}

/** The body of `POST /runs/retry`: ids, or a filter of failed runs. */
export const retryRunsBodySchema = z
  .strictObject({ ids: idsField.optional(), ...runFilterShape, ...bulkPageShape })
  .superRefine(checkSelection({ needsFilter: false }));
export interface RetryRunsBody extends Infer<typeof retryRunsBodySchema> {}

const runFailuresField = z
  .array(z.object({ run_id: z.string(), error: failureSchema }))
  .meta({ description: "Runs that could not be changed, and why, such as a run that has ended." });

export const cancelledRunsSchema = z
  .object({
    cancelled: z.array(z.string()).meta({ description: "Ids of the runs that were cancelled." }),
    failed: runFailuresField,
    next_cursor: z.string().optional().meta({ description: "Set if there are more runs to check." }),
  })
  .meta({ id: "CancelledRuns" });
export interface CancelledRuns extends Infer<typeof cancelledRunsSchema> {}

export const retriedRunsSchema = z
  .object({
    retried: z.array(z.string()).meta({ description: "Ids of the runs that were queued again." }),
    failed: runFailuresField,
    next_cursor: z.string().optional().meta({ description: "Set if there are more runs to check." }),
  })
  .meta({ id: "RetriedRuns" });
export interface RetriedRuns extends Infer<typeof retriedRunsSchema> {}

/** The query of `GET /runs/{run_id}/events`. */
export const runEventsQuerySchema = z.strictObject({
  after: eventPositionField.optional(),
  limit: countField(1_000).optional().meta({ description: "1 to 1,000; default 100." }),
  types: textField(1_000)
    .transform((types): unknown[] => types.split(","))
    .pipe(z.array(choiceField(eventTypes)))
    .optional()
    .meta({ description: "Event types, joined by commas; without it, all." }),
});

export const runEventPageSchema = z
  .object({
    events: z.array(eventSchema),
    next_after: z
      .int()
      .optional()
      .meta({ description: "`after` of the next page; absent if this page is empty." }),
  })
  .meta({ id: "RunEventPage", description: "Oldest first." });
export interface RunEventPage extends Infer<typeof runEventPageSchema> {}

export const runStreamQuerySchema = z.strictObject({ after: streamPositionField.optional() });

/** The body of `POST /runs/{run_id}/signal`. */
export const signalBodySchema = z.strictObject({
  name: textField(200)
    .min(1, "must not be empty")
    .meta({ description: "The name that the workflow waits for." }),
  payload: z.unknown().optional(),
});
export interface SignalBody extends Infer<typeof signalBodySchema> {}

export const signalAcceptedSchema = z
  .object({ status: z.literal("accepted") })
  .meta({ id: "SignalAccepted" });
